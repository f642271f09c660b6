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

/** Builds the notice for an event. Returns null when the event deserves none (contract 11). */
export async function buildNotice(db: Database, event: JournalRow): Promise<Notice | null> {
  const data = JSON.parse(event.data) as Record<string, unknown>;
  const text = (key: string) => typeof data[key] === "string" ? data[key] : "";
  const { session_key, message_id, execution_id } = event;
  const notice = (kind: Notice["kind"], about: string, content: string): Notice => ({
    ...{ kind, session_key, message_id, execution_id, about, content },
  });
  switch (event.kind) {
    case "execution.failed":
      return await buildRunNotice(db, event);
    case "task.gate_failed":
      return await buildGateNotice(db, event, text("error"));
    case "schedule.paused":
      return await buildPauseNotice(db, event);
    case "question.opened":
      return await buildQuestionNotice(db, event, text("question_id"));
    case "budget.soft":
    case "budget.hard":
      return notice(event.kind, text("budget_id"), formatBudget(data));
    case "engine.limited":
      return notice(
        "engine.limited",
        `engine:${text("engine")}`,
        `${text("engine")} is rate-limited until ${formatTime(data.until)}.`,
      );
    case "engine.back":
    case "engine.lifted":
      return notice("engine.back", `engine:${text("engine")}`, `${text("engine")} is available again.`);
    case "platform.down":
      return notice(
        "platform.down",
        `platform:${text("platform")}`,
        `The platform ${text("platform")} is unreachable: ${text("error")}.`,
      );
    case "message.undelivered":
      return await buildDeliveryNotice(db, event, text("outbound_id"), text("reason"));
    case "webhook.disabled":
      return notice(
        "delivery.failed",
        `${TO_WEBHOOK}${text("name")}`,
        `The webhook ${text("name")} was disabled: ${text("reason")}. Enable it with: ` +
          `svc ctl webhook update ${text("name")} --enable`,
      );
    case "system.disk_low":
      return notice("disk.low", "disk", `The disk is nearly full: ${text("detail")}.`);
    case "system.backup_failed":
      return notice("backup.failed", "backup", `The backup failed: ${text("detail")}.`);
    default:
      return null;
  }
}

// A run that is retried has not failed yet, and a cancelled run has not failed at all.
async function buildRunNotice(db: Database, event: JournalRow): Promise<Notice | null> {
  const { session_key, message_id, execution_id, task_id } = event;
  const run = await findFailedRun(db, execution_id);
  if (run === null || run.failure === "cancelled" || run.tried_again === 1) return null;
  const why = `${run.failure}${run.error === "" ? "" : `, ${run.error}`}`;
  const content = `${run.worker_name} failed: ${why} (execution ${execution_id}).`;
  const [kind, about] = run.task_type === "scheduled"
    ? ["schedule.failed" as const, task_id]
    : ["run.failed" as const, run.worker_id];
  return { kind, about, content, session_key, message_id, execution_id };
}

async function buildGateNotice(db: Database, event: JournalRow, error: string): Promise<Notice | null> {
  const { session_key, message_id, task_id } = event;
  const task = await findTask(db, task_id);
  if (task === null) return null;
  const content = formatGateFailure(formatTitle(task), error);
  return { kind: "schedule.failed", about: task_id, content, session_key, message_id };
}

async function buildPauseNotice(db: Database, event: JournalRow): Promise<Notice | null> {
  const { session_key, message_id, task_id } = event;
  const task = await findTask(db, task_id);
  if (task === null) return null;
  const content = `The schedule ${
    formatTitle(task)
  } is ${task.reason}. Resume it with: svc ctl schedule resume ${task_id}`;
  return { kind: "schedule.paused", about: task_id, content, session_key, message_id };
}

async function buildQuestionNotice(db: Database, event: JournalRow, id: string): Promise<Notice | null> {
  const { session_key, message_id, execution_id } = event;
  const json = await findQuestionJson(db, id);
  if (json === null) return null;
  const { status, text } = parseJson(json);
  // Another answer came first.
  if (status !== "open") return null;
  const content = `Open question: ${text}\nAnswer it there, or with: svc ctl question answer ${id} <answer>`;
  return { kind: "question.opened", about: id, content, session_key, message_id, execution_id };
}

// An undelivered system message causes no notice: it may be a notice itself, and notices must not cause notices.
async function buildDeliveryNotice(
  db: Database,
  { session_key, message_id }: JournalRow,
  id: string,
  reason: string,
): Promise<Notice | null> {
  const speaker = await findSourceType(db, id);
  if (speaker === null || speaker === "system") return null;
  const about = `platform:${parsePlatformName(session_key)}`;
  const content = `Cannot deliver a message to ${session_key}: ${reason}.`;
  return { kind: "delivery.failed", about, content, session_key, message_id };
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
