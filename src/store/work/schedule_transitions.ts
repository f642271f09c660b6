// Transitions of schedules and countdowns when an occurrence fires, waits, is skipped or ends (contract 3, Task; contract 15).
import { WAKEUP } from "../../base/wakeups.ts";
import { guard, type Statement, type Value } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import type { TaskRun } from "./task_transitions.ts";
import { TASK_IS_RECURRING, TASK_IS_TIMED } from "../db/status_sql.ts";

/** The last run of a schedule, as stored in its task (contract 8.9). */
interface LastRun {
  status: "completed" | "failed" | "cancelled";
  error: string;
  /** Whether it adds to the failures in a row. Cancelled, lost and limited runs do not (contract 15). */
  counts: boolean;
}

/** The run or the gate of a schedule that ends. */
export type EndingRun = TaskRun & { of: "run" | "gate" };

/** Builds the assignments for a run that ended. Empty after a gate skipped the run. */
function buildLastRunSet(
  last: LastRun | null,
  { execution_id }: EndingRun,
  now: number,
): { set: string; args: Value[] } {
  if (last === null) return { set: "", args: [] };
  const { status, error, counts } = last;
  return {
    set: `, last_status = ?, last_error = ?, runs_ended = runs_ended + 1,
        last_run_at = coalesce((select coalesce(started_at, created_at) from execution where id = ?), ?),
        failures_in_row = case ? when 'completed' then 0 when 'counts' then failures_in_row + 1 else failures_in_row end`,
    args: [status, error, execution_id, now, status === "failed" && counts ? "counts" : status],
  };
}

function buildRunCondition({ of, task_id, execution_id }: EndingRun): { where: string; args: Value[] } {
  return of === "run"
    ? { where: "id = ? and status = 'running' and execution_id = ?", args: [task_id, execution_id] }
    : { where: "id = ? and status = 'pending'", args: [task_id] };
}

interface NextRun {
  /** null: no occurrence is left, except maybe a queued one. */
  next: number | null;
  reason: string;
}

/** running or pending -> scheduled, for the stored next time if it is in the future, else `next`, else the queued occurrence. */
export function rescheduleTask(
  run: EndingRun,
  last: LastRun | null,
  { next, reason }: NextRun,
  now: number,
): Statement {
  const { where, args } = buildRunCondition(run);
  const lastRun = buildLastRunSet(last, run, now);
  return {
    sql: `update task
      set status = 'scheduled', reason = ?, due_at = null, attempt = 0, updated_at = ?,
        next_run_at = coalesce(iif(next_run_at > ?, next_run_at, ?), queued_at)${lastRun.set}
      where ${where} and (? is not null or queued_at is not null)`,
    args: [reason, now, now, next, ...lastRun.args, ...args, next],
    wakeup: WAKEUP.scheduler,
  };
}

/** running or pending -> completed, after the last run of a schedule (contract 15). */
export function completeSchedule(
  run: EndingRun,
  last: LastRun | null,
  reason: string,
  now: number,
): Statement {
  const { where, args } = buildRunCondition(run);
  const lastRun = buildLastRunSet(last, run, now);
  return {
    sql: `update task
      set status = 'completed', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?${lastRun.set}
      where ${where}`,
    args: [reason, now, ...lastRun.args, ...args],
  };
}

/** pending -> completed, failed or cancelled: the gate of a countdown prevented the run (contract 15). */
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

/** Pauses a schedule after too many failures in a row (contract 15). */
export function pauseFailing(id: string, reason: string, now: number): Statement {
  return {
    sql: `update task
      set paused = 1, reason = ?, queued_at = null, updated_at = ?
      where id = ? and status = 'scheduled' and paused = 0
        and pause_after_failures > 0 and failures_in_row >= pause_after_failures`,
    args: [reason, now, id],
  };
}

/** Builds a condition that is true when pauseFailing() paused the schedule in this batch. */
export function buildPausedCondition(id: string, reason: string, now: number): SqlCondition {
  return {
    // A schedule that was paused earlier has another reason.
    sql: "exists (select 1 from task where id = ? and paused = 1 and reason = ? and updated_at = ?)",
    args: [id, reason, now],
  };
}

/** scheduled -> pending: a countdown is due. */
export function fireCountdown(id: string, expected: number, now: number): Statement[] {
  return guard(
    `update task
    set status = 'pending', due_at = ?, next_run_at = null, run_no = run_no + 1, updated_at = ?
    where id = ? and status = 'scheduled' and paused = 0 and next_run_at = ?`,
    [expected, now, id, expected],
    WAKEUP.dispatcher,
  );
}

/** A step of a schedule from the expected time to the next one. */
interface ScheduleStep {
  id: string;
  expected: number;
  /** null: no occurrence is left. */
  next: number | null;
  now: number;
}

/** scheduled -> pending: a schedule is due. Sets its next time. */
export function fireSchedule(step: ScheduleStep & { dueAt: number }): Statement[] {
  return guard(
    `update task
    set status = 'pending', due_at = ?, attempt = 0, next_run_at = ?, run_no = run_no + 1, updated_at = ?
    where id = ? and status = 'scheduled' and paused = 0 and next_run_at = ?`,
    [step.dueAt, step.next, step.now, step.id, step.expected],
    WAKEUP.dispatcher,
  );
}

/** Queues an occurrence until the current run ends, for the overlaps `queue` and `replace` (contract 15). */
export function queueOccurrence(step: ScheduleStep & { dueAt: number }): Statement[] {
  return guard(
    `update task
    set next_run_at = ?, queued_at = ?, updated_at = ?
    where id = ? and type ${TASK_IS_RECURRING} and next_run_at = ?`,
    [step.next, step.dueAt, step.now, step.id, step.expected],
    WAKEUP.gate,
  );
}

/** scheduled -> pending: starts the queued occurrence after the previous one has ended. */
export function fireQueued(id: string, queuedAt: number, now: number): Statement[] {
  return guard(
    `update task
    set status = 'pending', due_at = queued_at, attempt = 0, queued_at = null, run_no = run_no + 1, updated_at = ?,
      next_run_at = nullif(next_run_at, queued_at)
    where id = ? and status = 'scheduled' and paused = 0 and queued_at = ?`,
    [now, id, queuedAt],
    WAKEUP.dispatcher,
  );
}

export function clearQueuedTime(id: string, queuedAt: number): Statement {
  return { sql: "update task set queued_at = null where id = ? and queued_at = ?", args: [id, queuedAt] };
}

/** Skips an occurrence that was missed, or that fell due during a run. */
export function skipOccurrence(step: ScheduleStep): Statement[] {
  return guard(
    `update task
    set next_run_at = ?, updated_at = ?
    where id = ? and type ${TASK_IS_RECURRING} and next_run_at = ?`,
    [step.next, step.now, step.id, step.expected],
  );
}

/** scheduled -> completed: the last occurrence was missed. */
export function closeSchedule({ id, expected, now }: ScheduleStep): Statement[] {
  return guard(
    `update task
    set status = 'completed', reason = 'no time is left until its end', next_run_at = null, updated_at = ?
    where id = ? and status = 'scheduled' and next_run_at = ?`,
    [now, id, expected],
  );
}
