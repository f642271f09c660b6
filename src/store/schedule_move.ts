// Moves of schedules and countdowns: to their next time, and away from it (contract 3, Task; contract 15).
import { BELL } from "../base/bells.ts";
import { guarded, type Statement, type Value } from "./database.ts";
import type { When } from "./outbound.ts";
import type { TaskRun } from "./task_move.ts";

/** How the run of a schedule ended, as its task remembers it (contract 8.9). */
interface LastRun {
  status: "completed" | "failed" | "cancelled";
  error: string;
  /** Whether it adds to the failures in a row: what was cancelled, lost or limited does not (contract 15). */
  counts: boolean;
}

const LAST_RUN = `last_status = ?, last_error = ?, runs_ended = runs_ended + 1,
  last_run_at = (select coalesce(started_at, created_at) from execution where execution.id = task.execution_id),
  failures_in_row = case ? when 'completed' then 0 when 'counts' then failures_in_row + 1 else failures_in_row end`;

function valuesOf({ status, error, counts }: LastRun): Value[] {
  return [status, error, status === "failed" && counts ? "counts" : status];
}

/**
 * running -> scheduled: a cron task waits for its next time: `nextRunAt`, or the stored one when that is in the future. With
 * null there is none any more: it goes on only when a time waits for the end of this run.
 */
export function rescheduleTask(
  run: TaskRun,
  last: LastRun,
  nextRunAt: number | null,
  now: number,
): Statement {
  return {
    sql: `update task
      set status = 'scheduled', reason = '', due_at = null, attempt = 0, updated_at = ?,
        next_run_at = coalesce(iif(next_run_at > ?, next_run_at, ?), queued_at), ${LAST_RUN}
      where id = ? and status = 'running' and execution_id = ? and (? is not null or queued_at is not null)`,
    args: [now, now, nextRunAt, ...valuesOf(last), run.task_id, run.execution_id, nextRunAt],
    bell: BELL.scheduler,
  };
}

/** running -> completed: this was the last run of a schedule (contract 15). */
export function completeSchedule(run: TaskRun, last: LastRun, reason: string, now: number): Statement {
  return {
    sql: `update task
      set status = 'completed', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?, ${LAST_RUN}
      where id = ? and status = 'running' and execution_id = ?`,
    args: [reason, now, ...valuesOf(last), run.task_id, run.execution_id],
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
export function isPausedSince(id: string, now: number): When {
  return {
    sql: "exists (select 1 from task where id = ? and paused = 1 and updated_at = ?)",
    args: [id, now],
  };
}

/** scheduled -> pending: the time of a countdown has come. */
export function fireCountdown(id: string, expected: number, now: number): Statement[] {
  return guarded(
    `update task
    set status = 'pending', due_at = ?, next_run_at = null, run_no = run_no + 1, updated_at = ?
    where id = ? and status = 'scheduled' and paused = 0 and next_run_at = ?`,
    [expected, now, id, expected],
    BELL.dispatcher,
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
    BELL.dispatcher,
  );
}

/** A schedule moves on without a run: the time was missed, or the run before is still open. */
export function skipOccurrence(move: ScheduleMove): Statement[] {
  return guarded(
    `update task
    set next_run_at = ?, updated_at = ?
    where id = ? and type = 'scheduled' and next_run_at = ?`,
    [move.next, move.now, move.id, move.expected],
  );
}

/** scheduled -> completed: its last time was missed. */
export function closeSchedule({ id, expected, now }: ScheduleMove): Statement[] {
  return guarded(
    `update task
    set status = 'completed', next_run_at = null, updated_at = ?
    where id = ? and status = 'scheduled' and next_run_at = ?`,
    [now, id, expected],
  );
}
