// running or pending -> scheduled, completed (its last run), or paused (too many failures): a schedule after its run or gate
import type { RunKeys } from "../domain/call/run_identity.ts";
import type { Task } from "../domain/work/task.ts";
import { findNextRunAt } from "../domain/work/task_plan.ts";
import type { Failure } from "../domain/call/vocabulary.ts";
import type { Statement } from "../store/db/database.ts";
import { recordTransition } from "../store/events/journal.ts";
import { insertNotice } from "../store/chat/notice.ts";
import {
  buildPausedCondition,
  completeSchedule,
  type EndingRun,
  pauseFailing,
  rescheduleTask,
} from "../store/work/schedule_transitions.ts";

/** The fields that decide what follows a schedule's run. */
export type EndedSchedule = Pick<
  Task,
  | "name"
  | "instruction"
  | "cron"
  | "time_zone"
  | "until"
  | "max_runs"
  | "runs_ended"
  | "pause_after_failures"
  | "deliver_to"
>;

/** The end of a run or its gate. `gated` means that the gate skipped the run. */
interface ScheduleEnd {
  status: "completed" | "failed" | "cancelled" | "gated";
  failure: Failure | "gate_failed" | "";
  error: string;
}

// Failures that do not count for pause_after_failures, because the schedule did not cause them (contract 15).
const NOT_COUNTED: readonly string[] = ["cancelled", "server_lost", "rate_limited", "budget"];

const NEXT_TRY_MS = 60_000;

interface EndContext {
  keys: RunKeys;
  of: EndingRun["of"];
  defaultZone: string;
  now: number;
}

/**
 * Builds the statements that follow a run or gate of a schedule. The schedule waits for its next time after any outcome. It completes
 * when no time is left, and pauses with a notice after too many failures in a row (contract 3, Task; contract 15).
 */
export function buildScheduleEnd(task: EndedSchedule, end: ScheduleEnd, context: EndContext): Statement[] {
  const { keys, of, now } = context;
  const { status, failure, error } = end;
  const counts = status === "failed" && !NOT_COUNTED.includes(failure);
  const last = status === "gated"
    ? null
    : { status, error: status === "completed" ? "" : `${failure}: ${error}`, counts };
  const ended = { ...keys, of };
  const done = last !== null && task.max_runs !== null && task.runs_ended + 1 >= task.max_runs;
  const next = done ? null : findNext(task, context);
  const reason = status === "gated" ? error : "";
  const again = done ? [] : recordTransition(rescheduleTask(ended, last, { next, reason }, now), now, {
    kind: "task.rescheduled",
    ...keys,
  });
  const paused = counts && last !== null && !done ? buildPause(task, last.error, context) : [];
  if (next !== null) return [...again, ...paused];
  const why = done ? `it has run ${task.max_runs} times` : "no time is left until its end";
  const over = recordTransition(completeSchedule(ended, last, why, now), now, {
    kind: "task.completed",
    ...keys,
  });
  return [...again, ...over, ...paused];
}

// An unknown time zone must not prevent storing the outcome. The scheduler reports the time zone at the next try.
function findNext(task: EndedSchedule, { defaultZone, now }: EndContext): number | null {
  try {
    return findNextRunAt(task, defaultZone, now);
  } catch {
    return now + NEXT_TRY_MS;
  }
}

function buildPause(task: EndedSchedule, error: string, { keys, now }: EndContext): Statement[] {
  const words = `paused: its last ${task.pause_after_failures} runs failed; the latest: ${error}`;
  const notice = {
    kind: "schedule.paused" as const,
    session_key: task.deliver_to || keys.session_key,
    message_id: keys.message_id,
    about: keys.task_id,
    content: `The schedule ${
      formatTitle(task)
    } is ${words}. Resume it with: svc ctl schedule resume ${keys.task_id}`,
  };
  return [
    ...recordTransition(pauseFailing(keys.task_id, words, now), now, { kind: "schedule.paused", ...keys }),
    ...insertNotice(notice, now, buildPausedCondition(keys.task_id, words, now)),
  ];
}

const TITLE_MAX_CHARACTERS = 80;

/** Returns the quoted name of a schedule, or the start of its instruction. */
export function formatTitle({ name, instruction }: Pick<Task, "name" | "instruction">): string {
  const [line = ""] = (name || instruction).trim().split("\n");
  return JSON.stringify(
    line.length > TITLE_MAX_CHARACTERS ? `${line.slice(0, TITLE_MAX_CHARACTERS)}…` : line,
  );
}

export function formatGateFailure(title: string, error: string): string {
  return `The gate of ${title} failed, so nothing ran: ${error}`;
}
