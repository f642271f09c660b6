// Moves of schedules and countdowns: to their next time, and away from it (contract 3, Task; contract 15).
import { WAKEUP } from "../../base/wakeups.ts";
import { guarded, type Statement, type Value } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import type { TaskRun } from "./task_transitions.ts";
import { TASK_IS_RECURRING, TASK_IS_TIMED } from "../db/status_sql.ts";

/** How the run of a schedule ended, as its task remembers it (contract 8.9). */
interface LastRun {
  status: "completed" | "failed" | "cancelled";
  error: string;
  /** Whether it adds to the failures in a row: what was cancelled, lost or limited does not (contract 15). */
  counts: boolean;
}

/** What ends: the run of a schedule, or the gate before it, which nothing has been started for yet. */
export type Turn = TaskRun & { of: "run" | "gate" };

/** The columns that remember a run, and their values; what a gate skipped was none. */
function lastRun(last: LastRun | null, { execution_id }: Turn, now: number): { set: string; args: Value[] } {
  if (last === null) return { set: "", args: [] };
  const { status, error, counts } = last;
  return {
    set: `, last_status = ?, last_error = ?, runs_ended = runs_ended + 1,
        last_run_at = coalesce((select coalesce(started_at, created_at) from execution where id = ?), ?),
        failures_in_row = case ? when 'completed' then 0 when 'counts' then failures_in_row + 1 else failures_in_row end`,
    args: [status, error, execution_id, now, status === "failed" && counts ? "counts" : status],
  };
}

function whereOf({ of, task_id, execution_id }: Turn): { where: string; args: Value[] } {
  return of === "run"
    ? { where: "id = ? and status = 'running' and execution_id = ?", args: [task_id, execution_id] }
    : { where: "id = ? and status = 'pending'", args: [task_id] };
}

/** How a schedule goes on after a turn. */
interface NextTurn {
  /** null: there is no time any more; it goes on only when one waits for the end of this turn. */
  next: number | null;
  reason: string;
}

/**
 * running or pending -> scheduled: it waits for `next`, or the stored next time when that is in the future. Where there is none any
 * more, the time that waits for the end of this turn is its next.
 */
export function rescheduleTask(
  turn: Turn,
  last: LastRun | null,
  { next, reason }: NextTurn,
  now: number,
): Statement {
  const { where, args } = whereOf(turn);
  const remembered = lastRun(last, turn, now);
  return {
    sql: `update task
      set status = 'scheduled', reason = ?, due_at = null, attempt = 0, updated_at = ?,
        next_run_at = coalesce(iif(next_run_at > ?, next_run_at, ?), queued_at)${remembered.set}
      where ${where} and (? is not null or queued_at is not null)`,
    args: [reason, now, now, next, ...remembered.args, ...args, next],
    wakeup: WAKEUP.scheduler,
  };
}

/** running or pending -> completed: this was the last turn of a schedule (contract 15). */
export function completeSchedule(turn: Turn, last: LastRun | null, reason: string, now: number): Statement {
  const { where, args } = whereOf(turn);
  const remembered = lastRun(last, turn, now);
  return {
    sql: `update task
      set status = 'completed', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?${remembered.set}
      where ${where}`,
    args: [reason, now, ...remembered.args, ...args],
  };
}

/** pending -> completed, failed or cancelled: a countdown whose gate did not let it run (contract 15). */
export function closeCountdown(
  id: string,
  to: "completed" | "failed" | "cancelled",
  reason: string,
  now: number,
): Statement {
  return {
    sql: `update task
      set status = ?, reason = ?, due_at = null, updated_at = ?
      where id = ? and status = 'pending' and type ${TASK_IS_TIMED}
        and type not ${TASK_IS_RECURRING}`,
    args: [to, reason, now, id],
  };
}

/** A schedule that has failed too often in a row pauses; no change otherwise (contract 15). */
export function pauseFailing(id: string, reason: string, now: number): Statement {
  return {
    sql: `update task
      set paused = 1, reason = ?, queued_at = null, updated_at = ?
      where id = ? and status = 'scheduled' and paused = 0
        and pause_after_failures > 0 and failures_in_row >= pause_after_failures`,
    args: [reason, now, id],
  };
}

/** True when pauseFailing() has paused it in this batch. */
export function isPausedSince(id: string, reason: string, now: number): SqlCondition {
  return {
    // Somebody may have paused it before; then it has another reason.
    sql: "exists (select 1 from task where id = ? and paused = 1 and reason = ? and updated_at = ?)",
    args: [id, reason, now],
  };
}

/** scheduled -> pending: the time of a countdown has come. */
export function fireCountdown(id: string, expected: number, now: number): Statement[] {
  return guarded(
    `update task
    set status = 'pending', due_at = ?, next_run_at = null, run_no = run_no + 1, updated_at = ?
    where id = ? and status = 'scheduled' and paused = 0 and next_run_at = ?`,
    [expected, now, id, expected],
    WAKEUP.dispatcher,
  );
}

/** How a schedule moves on: from the expected time to the next one; null: there is none any more. */
interface ScheduleMove {
  id: string;
  expected: number;
  next: number | null;
  now: number;
}

/** scheduled -> pending: the time of a schedule has come; its next time is set. */
export function fireSchedule(move: ScheduleMove & { dueAt: number }): Statement[] {
  return guarded(
    `update task
    set status = 'pending', due_at = ?, attempt = 0, next_run_at = ?, run_no = run_no + 1, updated_at = ?
    where id = ? and status = 'scheduled' and paused = 0 and next_run_at = ?`,
    [move.dueAt, move.next, move.now, move.id, move.expected],
    WAKEUP.dispatcher,
  );
}

/** A time waits for the end of the present turn: of a schedule with the overlap `queue` or `replace` (contract 15). */
export function queueOccurrence(move: ScheduleMove & { dueAt: number }): Statement[] {
  return guarded(
    `update task
    set next_run_at = ?, queued_at = ?, updated_at = ?
    where id = ? and type ${TASK_IS_RECURRING} and next_run_at = ?`,
    [move.next, move.dueAt, move.now, move.id, move.expected],
    WAKEUP.gate,
  );
}

/** scheduled -> pending: the turn before has ended, and this time waited for that. */
export function fireQueued(id: string, queuedAt: number, now: number): Statement[] {
  return guarded(
    `update task
    set status = 'pending', due_at = queued_at, attempt = 0, queued_at = null, run_no = run_no + 1, updated_at = ?,
      next_run_at = nullif(next_run_at, queued_at)
    where id = ? and status = 'scheduled' and paused = 0 and queued_at = ?`,
    [now, id, queuedAt],
    WAKEUP.dispatcher,
  );
}

/** No time waits any more. */
export function dropQueued(id: string, queuedAt: number): Statement {
  return { sql: "update task set queued_at = null where id = ? and queued_at = ?", args: [id, queuedAt] };
}

/** A schedule moves on without a run: the time was missed, or the run before is still open. */
export function skipOccurrence(move: ScheduleMove): Statement[] {
  return guarded(
    `update task
    set next_run_at = ?, updated_at = ?
    where id = ? and type ${TASK_IS_RECURRING} and next_run_at = ?`,
    [move.next, move.now, move.id, move.expected],
  );
}

/** scheduled -> completed: its last time was missed. */
export function closeSchedule({ id, expected, now }: ScheduleMove): Statement[] {
  return guarded(
    `update task
    set status = 'completed', reason = 'no time is left until its end', next_run_at = null, updated_at = ?
    where id = ? and status = 'scheduled' and next_run_at = ?`,
    [now, id, expected],
  );
}
