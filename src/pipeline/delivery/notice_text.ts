// Turns journal events into the notices that people receive.
import { parsePlatformName } from "../../domain/chat/message.ts";
import { type Notice, TO_WEBHOOK } from "../../domain/system/notice.ts";
import { formatAmount, getCountedLimit } from "../../domain/workers/budget.ts";
import { parseJson } from "../../domain/call/json.ts";
import type { BudgetUnit } from "../../domain/call/vocabulary.ts";
import { formatGateFailure, formatTitle } from "../../run/schedule_end.ts";
import type { Database } from "../../store/db/database.ts";
import type { JournalRow } from "../../store/events/journal.ts";
import { findFailedRun, findSourceType } from "../../store/chat/notice.ts";
import { findQuestionJson } from "../../store/work/question.ts";
import { findTask } from "../../store/work/task.ts";

type Subject = Pick<Notice, "kind" | "about" | "content">;

/** Builds the notice for an event. Returns null when the event deserves none (contract 11). */
export async function buildNotice(db: Database, event: JournalRow): Promise<Notice | null> {
  const subject = await findSubject(db, event);
  const { session_key, message_id } = event;
  return subject === null ? null : { ...subject, session_key, message_id };
}

async function findSubject(db: Database, event: JournalRow): Promise<Subject | null> {
  const data = JSON.parse(event.data) as Record<string, unknown>;
  const text = (key: string) => typeof data[key] === "string" ? data[key] : "";
  switch (event.kind) {
    case "execution.failed":
      return await describeRun(db, event);
    case "task.gate_failed":
      return await describeGate(db, event, text("error"));
    case "schedule.paused":
      return await describePause(db, event);
    case "question.opened":
      return await describeQuestion(db, text("question_id"));
    case "message.undelivered":
      return await describeDelivery(db, event, text("outbound_id"), text("reason"));
    case "budget.soft":
    case "budget.hard":
      return { kind: event.kind, about: text("budget_id"), content: formatBudget(data) };
    case "engine.limited": {
      const content = `${text("engine")} is rate-limited until ${formatTime(data.until)}.`;
      return { kind: "engine.limited", about: `engine:${text("engine")}`, content };
    }
    case "engine.back":
    case "engine.lifted": {
      const content = `${text("engine")} is available again.`;
      return { kind: "engine.back", about: `engine:${text("engine")}`, content };
    }
    case "platform.down": {
      const content = `The platform ${text("platform")} is unreachable: ${text("error")}.`;
      return { kind: "platform.down", about: `platform:${text("platform")}`, content };
    }
    case "webhook.disabled": {
      const content = `The webhook ${text("name")} was disabled: ${text("reason")}. Enable it with: ` +
        `svc ctl webhook update ${text("name")} --enable`;
      return { kind: "delivery.failed", about: `${TO_WEBHOOK}${text("name")}`, content };
    }
    case "launcher.paused": {
      const content = `The launcher ${text("launcher")} is paused after failed starts: ${text("error")}. ` +
        `Resume it with: svc ctl launcher resume ${text("launcher")}`;
      return { kind: "launcher.paused", about: `launcher:${text("launcher")}`, content };
    }
    case "launch.problem": {
      const content = `A launch of ${text("launcher")} has a problem: ${text("detail")}.`;
      return { kind: "launch.problem", about: `launcher:${text("launcher")}`, content };
    }
    case "system.disk_low":
      return { kind: "disk.low", about: "disk", content: `The disk is nearly full: ${text("detail")}.` };
    case "system.backup_failed":
      return { kind: "backup.failed", about: "backup", content: `The backup failed: ${text("detail")}.` };
    default:
      return null;
  }
}

// A run that is retried has not failed yet, and a cancelled run has not failed at all.
async function describeRun(db: Database, { execution_id, task_id }: JournalRow): Promise<Subject | null> {
  const run = await findFailedRun(db, execution_id);
  if (run === null || run.failure === "cancelled" || run.tried_again === 1) return null;
  const why = `${run.failure}${run.error === "" ? "" : `, ${run.error}`}`;
  const content = `${run.worker_name} failed: ${why} (execution ${execution_id}).`;
  return run.task_type === "scheduled"
    ? { kind: "schedule.failed", about: task_id, content }
    : { kind: "run.failed", about: run.worker_id, content };
}

async function describeGate(db: Database, { task_id }: JournalRow, error: string): Promise<Subject | null> {
  const task = await findTask(db, task_id);
  if (task === null) return null;
  const content = formatGateFailure(formatTitle(task), error);
  return { kind: "schedule.failed", about: task_id, content };
}

async function describePause(db: Database, { task_id }: JournalRow): Promise<Subject | null> {
  const task = await findTask(db, task_id);
  if (task === null) return null;
  const content = `The schedule ${formatTitle(task)} is ${task.reason}. ` +
    `Resume it with: svc ctl schedule resume ${task_id}`;
  return { kind: "schedule.paused", about: task_id, content };
}

async function describeQuestion(db: Database, id: string): Promise<Subject | null> {
  const json = await findQuestionJson(db, id);
  if (json === null) return null;
  const { status, text } = parseJson(json);
  // Another answer came first.
  if (status !== "open") return null;
  const content = `Open question: ${text}\nAnswer it there, or with: svc ctl question answer ${id} <answer>`;
  return { kind: "question.opened", about: id, content };
}

// An undelivered system message causes no notice: it may be a notice itself, and notices must not cause notices.
async function describeDelivery(
  db: Database,
  { session_key }: JournalRow,
  id: string,
  reason: string,
): Promise<Subject | null> {
  const speaker = await findSourceType(db, id);
  if (speaker === null || speaker === "system") return null;
  const content = `Cannot deliver a message to ${session_key}: ${reason}.`;
  return { kind: "delivery.failed", about: `platform:${parsePlatformName(session_key)}`, content };
}

function formatBudget(data: Record<string, unknown>): string {
  const unit = data.unit as BudgetUnit;
  const counted = (value: unknown) => getCountedLimit({ unit, limit: Number(value) });
  const sum = formatAmount(counted(data.used) + counted(data.reserved), unit).replace(/ .*/, "");
  return `The budget ${JSON.stringify(data.name)} has used or reserved ${sum} of ${
    formatAmount(counted(data.limit), unit)
  } (${data.period}).`;
}

function formatTime(value: unknown): string {
  return typeof value === "number" ? new Date(value).toISOString() : "an unknown time";
}
