// Turns inbox items and completed runs into the messages that devices show.
import type { Execution } from "../../domain/work/execution.ts";
import type { InboxItem } from "../../domain/system/inbox.ts";
import type { InboxKind } from "../../domain/call/vocabulary.ts";

const TEXT_MAX_CHARACTERS = 400;

const LABELS: Record<InboxKind, string> = {
  question: "Question",
  run_failed: "Run failed",
  task_stopped: "Task stopped",
  message_failed: "Message not routed",
  undelivered: "Reply not delivered",
  engine_limited: "Engine limited",
  budget_holds: "Budget reached",
  schedule_paused: "Schedule paused",
  worker_paused: "Worker paused",
  launcher_paused: "Launcher paused",
  secret_lost: "Secret lost",
  push_failed: "Push failed",
  rounds_over: "Branch needs a person",
};

/** A message as the service worker of the console shows it. */
export interface DeviceMessage {
  title: string;
  body: string;
  /** The page that a click opens. */
  path: string;
}

const SERVICE = "svc";
const INBOX = "/console/";

/** Formats an inbox item: its worker and kind, and with `text` its subject. */
export function formatItem(item: InboxItem, text: boolean): DeviceMessage {
  const { kind, worker_name, title, detail, execution_id } = item;
  const label = LABELS[kind];
  const subject = [title, detail].filter((part) => part !== "").join("\n");
  return {
    title: worker_name || SERVICE,
    body: text && subject !== "" ? `${label}: ${shorten(subject)}` : label,
    path: kind === "run_failed" ? buildRunPath(execution_id) : INBOX,
  };
}

/** Formats a completed run: its worker, and with `text` its result. */
export function formatRun({ id, worker_name, result }: Execution, text: boolean): DeviceMessage {
  const body = text && result !== "" ? `Finished: ${shorten(result)}` : "Finished";
  return { title: worker_name || SERVICE, body, path: buildRunPath(id) };
}

/** Formats a message about several items or runs. */
export function formatSeveral(items: number, isRuns: boolean): DeviceMessage {
  return isRuns
    ? { title: SERVICE, body: `${items} runs finished`, path: "/console/executions" }
    : { title: SERVICE, body: `${items} items need you`, path: INBOX };
}

function buildRunPath(id: string): string {
  return `/console/executions/${id}`;
}

function shorten(text: string): string {
  const characters = [...text];
  if (characters.length <= TEXT_MAX_CHARACTERS) return text;
  return `${characters.slice(0, TEXT_MAX_CHARACTERS - 1).join("")}…`;
}
