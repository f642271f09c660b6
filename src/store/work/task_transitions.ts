// Every move of a task from one status to another, each one guarded statement (contract 3, Task).
import { WAKEUP } from "../../base/wakeups.ts";
import type { RunKeys } from "../../domain/call/run_identity.ts";
import type { Hold } from "../../domain/work/block.ts";
import { guarded, type Statement, type Value } from "../db/database.ts";
import { TASK_IS_ACTIVE, TASK_IS_RECURRING } from "../db/status_sql.ts";
import { IS_PATIENT } from "./task_queue.ts";

/** pending -> running: the dispatcher starts an execution. No change while a gate runs for it. */
export function claimTask(id: string, executionId: string, now: number): Statement[] {
  return guarded(
    `update task
    set status = 'running', execution_id = ?, attempt = attempt + 1, run_count = run_count + 1, reason = '',
      held = '', held_until = null, updated_at = ?
    where id = ? and status = 'pending' and not exists (
      select 1
      from occurrence
      where task_id = task.id and run_no = task.run_no and status = 'gating')`,
    [executionId, now, id],
  );
}

/** A gate is about to decide about a pending task: it says so, and nothing holds it any more. Guarded. */
export function noteGate(id: string, now: number): Statement[] {
  return guarded(
    `update task
    set reason = 'its gate runs', held = '', held_until = null, updated_at = ?
    where id = ? and status = 'pending'`,
    [now, id],
  );
}

/** A pending task whose gate did not come to an answer: it is asked again at `dueAt`, or at once. Its attempt counts when the service died. */
export function askGateAgain(
  id: string,
  { dueAt, reason }: { dueAt: number | null; reason: string },
  now: number,
): Statement {
  return {
    sql: `update task
      set reason = ?, due_at = coalesce(?, due_at), attempt = attempt + iif(? is null, 0, 1), updated_at = ?
      where id = ? and status = 'pending'`,
    args: [reason, dueAt, dueAt, now, id],
    wakeup: WAKEUP.dispatcher,
  };
}

/** The run of a task that an outcome belongs to: the outcome of another run changes nothing. */
export type TaskRun = Pick<RunKeys, "task_id" | "execution_id">;

/** running -> completed, failed or cancelled; no change when it was cancelled meanwhile. */
export function finishTask(
  run: TaskRun,
  to: "completed" | "failed" | "cancelled",
  reason: string,
  now: number,
): Statement {
  return {
    sql: `update task
      set status = ?, reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?
      where id = ? and status = 'running' and execution_id = ?`,
    args: [to, reason, now, run.task_id, run.execution_id],
  };
}

/** running -> pending: the run was lost and is tried again at `dueAt`. */
export function retryTask(run: TaskRun, dueAt: number, reason: string, now: number): Statement {
  return {
    sql: `update task
      set status = 'pending', due_at = ?, reason = ?, updated_at = ?
      where id = ? and status = 'running' and execution_id = ?`,
    args: [dueAt, reason, now, run.task_id, run.execution_id],
    wakeup: WAKEUP.dispatcher,
  };
}

/** running -> pending, in its old place: its engine's provider holds it. This does not count as an attempt. */
export function postponeTask(run: TaskRun, hold: Hold, now: number): Statement {
  return {
    sql: `update task
      set status = 'pending', held = ?, held_until = ?, reason = ?, attempt = attempt - 1, updated_at = ?
      where id = ? and status = 'running' and execution_id = ?`,
    args: [hold.held, hold.until, hold.reason, now, run.task_id, run.execution_id],
    wakeup: WAKEUP.dispatcher,
  };
}

/** running -> pending: where it ran, its engine's provider refuses it until `dueAt`. This does not count as an attempt. */
export function delayTask(run: TaskRun, dueAt: number, reason: string, now: number): Statement {
  return {
    sql: `update task
      set status = 'pending', due_at = ?, reason = ?, attempt = attempt - 1, updated_at = ?
      where id = ? and status = 'running' and execution_id = ?`,
    args: [dueAt, reason, now, run.task_id, run.execution_id],
    wakeup: WAKEUP.dispatcher,
  };
}

/** Tasks of one lane that one statement holds or lets go: some milliseconds of work. */
const HELD_BATCH_ROWS = 500;

/** The first task of its lane that something holds, and what held it before. */
interface HeldFrom {
  worker_id: string;
  held: string;
  due_at: number;
}

/**
 * Notes that something holds the due tasks of a worker, those that had `before` as what held them. They stay pending and in
 * their places, and the lane goes on with those behind them (contract 14, reliability BUD-2).
 */
export function holdTasks(
  { worker_id, held: before, due_at }: HeldFrom,
  hold: Hold,
  now: number,
): Statement {
  const { held, until, reason, whom } = hold;
  const only = whom.kind === "conversation"
    ? " and session_key = ?"
    : whom.kind === "patient"
    ? ` and ${IS_PATIENT}`
    : "";
  const index = before === "" ? "held = ''" : "held <> '' and held = ?";
  return {
    sql: `update task
      set held = ?, held_until = ?, reason = ?, updated_at = ?
      where id in (
        select id
        from task
        where status = 'pending' and ${index} and worker_id = ? and due_at <= ?${only}
        order by due_at, id
        limit ${HELD_BATCH_ROWS})`,
    args: [
      held,
      until,
      reason,
      now,
      ...(before === "" ? [] : [before]),
      worker_id,
      // A clock that was set back must not part the first task from what holds it.
      Math.max(now, due_at),
      ...(whom.kind === "conversation" ? [whom.session_key] : []),
    ],
  };
}

/** What held a task is over: those behind it in its lane, which the same thing held, wait for nothing but their turn. */
export function releaseTasks(workerId: string, held: string, now: number): Statement {
  return {
    sql: `update task
      set held = '', held_until = null, reason = '', updated_at = ?
      where id in (
        select id
        from task
        where status = 'pending' and held <> '' and held = ? and worker_id = ?
        order by due_at, id
        limit ${HELD_BATCH_ROWS})`,
    args: [now, held, workerId],
  };
}

/** running -> pending, in its old place in the queue: a graceful stop uses up no attempt. */
export function requeueTask(run: TaskRun, now: number): Statement {
  return {
    sql: `update task
      set status = 'pending', attempt = attempt - 1, run_count = run_count - 1, updated_at = ?
      where id = ? and status = 'running' and execution_id = ?`,
    args: [now, run.task_id, run.execution_id],
    wakeup: WAKEUP.dispatcher,
  };
}

/** pending or scheduled, or a running schedule -> cancelled: what `task cancel` may do (contract 3, Task). */
export function cancelTask(id: string, reason: string, now: number): Statement[] {
  return guarded(
    `update task
    set status = 'cancelled', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?
    where id = ? and (status in ('pending', 'scheduled') or status = 'running' and type ${TASK_IS_RECURRING})`,
    [reason, now, id],
  );
}

/** scheduled -> pending at once, by hand. A schedule keeps its next time; a countdown has none any more. */
export function runTaskNow(
  { id, run_no }: { id: string; run_no: number },
  depth: number,
  now: number,
): Statement[] {
  return guarded(
    `update task
    set status = 'pending', due_at = ?, attempt = 0, run_no = run_no + 1, updated_at = ?,
      next_run_at = iif(type ${TASK_IS_RECURRING}, next_run_at, null), depth = max(depth, ?)
    where id = ? and status = 'scheduled' and run_no = ?`,
    [now, now, depth, id, run_no],
    WAKEUP.dispatcher,
  );
}

/** running -> cancelled for a run that is being cancelled; a schedule stays and goes on with its next time. */
export function cancelRunOf(run: TaskRun, reason: string, now: number): Statement {
  const { sql, args } = finishTask(run, "cancelled", reason, now);
  return { sql: `${sql} and type <> 'scheduled'`, args };
}

/** Which tasks a clear or a deletion cancels. */
export type TaskOwner = { session_key: string } | { worker_id: string } | {
  session_key: string;
  worker_id: string;
} | { session_key: string; type: "immediate" };

/** Every active task of the owner -> cancelled, running ones included; returns their ids and keys. */
export function cancelTasksOf(owner: TaskOwner, reason: string, now: number): Statement {
  const { where, args } = ownedBy(owner);
  return {
    sql: `update task
      set status = 'cancelled', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?
      where ${where} and status ${TASK_IS_ACTIVE}
      returning id, session_key, message_id, worker_id, execution_id`,
    args: [reason, now, ...args],
  };
}

/** The condition on the tasks of an owner. */
export function ownedBy(owner: TaskOwner): { where: string; args: Value[] } {
  const entries = Object.entries(owner);
  return {
    where: entries.map(([name]) => `${name} = ?`).join(" and "),
    args: entries.map(([, value]) => value),
  };
}
