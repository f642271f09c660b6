// Every transition of a task, each as one guarded statement (contract 3, Task).
import { WAKEUP } from "../../base/wakeups.ts";
import type { RunKeys } from "../../domain/call/run_identity.ts";
import type { Block } from "../../domain/work/block.ts";
import { buildSet, guard, type Statement, type Value } from "../db/database.ts";
import { TASK_IS_ACTIVE, TASK_IS_RECURRING } from "../db/status_sql.ts";
import { IS_PATIENT } from "./task_queue.ts";

/** pending -> running: the dispatcher starts an execution. Fails while a parent has not ended or a gate of the task runs. */
export function claimTask(id: string, executionId: string, now: number): Statement[] {
  return guard(
    `update task
    set status = 'running', execution_id = ?, attempt = attempt + 1, run_count = run_count + 1, reason = '',
      held = '', held_until = null, updated_at = ?
    where id = ? and status = 'pending' and open_parents = 0 and not exists (
      select 1
      from occurrence
      where task_id = task.id and run_no = task.run_no and status = 'gating')`,
    [executionId, now, id],
  );
}

/** Marks a pending task as waiting for its gate and unblocks it. Guarded. */
export function markGateRunning(id: string, now: number): Statement[] {
  return guard(
    `update task
    set reason = 'its gate runs', held = '', held_until = null, updated_at = ?
    where id = ? and status = 'pending'`,
    [now, id],
  );
}

/**
 * Returns a pending task to the queue after a gate without a result. With `dueAt`, it is due at that time and the attempt counts. With null,
 * it keeps its due time and no attempt counts.
 */
export function retryGate(
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

/** The run of a task that an outcome belongs to. The outcome of another run changes nothing. */
export type TaskRun = Pick<RunKeys, "task_id" | "execution_id">;

/** running -> completed, failed or cancelled. No change when the task was cancelled meanwhile. */
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
    // Tasks that wait for this one may start.
    wakeup: WAKEUP.dispatcher,
  };
}

function returnToQueue(
  { task_id, execution_id }: TaskRun,
  set: { sql: string; args: Value[] },
  now: number,
): Statement {
  return {
    sql: `update task
      set status = 'pending', ${set.sql}, updated_at = ?
      where id = ? and status = 'running' and execution_id = ?`,
    args: [...set.args, now, task_id, execution_id],
    wakeup: WAKEUP.dispatcher,
  };
}

/** running -> pending, for a retry of a lost run at `dueAt`. */
export function retryTask(run: TaskRun, dueAt: number, reason: string, now: number): Statement {
  return returnToQueue(run, buildSet({ due_at: dueAt, reason }), now);
}

/** running -> pending, in its old position, blocked by its engine's provider. Does not count as an attempt. */
export function postponeTask(run: TaskRun, { held, until, reason }: Block, now: number): Statement {
  const sql = "held = ?, held_until = ?, reason = ?, attempt = attempt - 1";
  return returnToQueue(run, { sql, args: [held, until, reason] }, now);
}

/** running -> pending: the provider of its engine on a runner refuses it until `dueAt`. Does not count as an attempt. */
export function delayTask(run: TaskRun, dueAt: number, reason: string, now: number): Statement {
  const sql = "due_at = ?, reason = ?, attempt = attempt - 1";
  return returnToQueue(run, { sql, args: [dueAt, reason] }, now);
}

/** Most tasks that one statement blocks or unblocks, some milliseconds of work. */
const BLOCKED_BATCH_ROWS = 500;

interface BlockedTask {
  worker_id: string;
  held: string;
  due_at: number;
}

/** Blocks a worker's due tasks that had the block `before`. They keep their positions, and its other tasks may run (contract 14, BUD-2). */
export function blockTasks(
  { worker_id, held: before, due_at }: BlockedTask,
  block: Block,
  now: number,
): Statement {
  const { held, until, reason, whom } = block;
  const only = whom.kind === "conversation"
    ? " and session_key = ?"
    : whom.kind === "patient"
    ? ` and ${IS_PATIENT}`
    : "";
  const index = before === "" ? "held = '' and open_parents = 0" : "held <> '' and held = ?";
  return {
    sql: `update task
      set held = ?, held_until = ?, reason = ?, updated_at = ?
      where id in (
        select id
        from task
        where status = 'pending' and ${index} and worker_id = ? and due_at <= ?${only}
        order by due_at, id
        limit ${BLOCKED_BATCH_ROWS})`,
    args: [
      held,
      until,
      reason,
      now,
      ...(before === "" ? [] : [before]),
      worker_id,
      // Includes the first task also after the clock was set back.
      Math.max(now, due_at),
      ...(whom.kind === "conversation" ? [whom.session_key] : []),
    ],
  };
}

/** Stores what a task in the queue waits for, without blocking it. */
export function explainWait(id: string, reason: string, now: number): Statement {
  return {
    sql: "update task set reason = ?, updated_at = ? where id = ? and status = 'pending' and held = ''",
    args: [reason, now, id],
  };
}

/** Unblocks the tasks of a worker that have this block. */
export function unblockTasks(workerId: string, held: string, now: number): Statement {
  return {
    sql: `update task
      set held = '', held_until = null, reason = '', updated_at = ?
      where id in (
        select id
        from task
        where status = 'pending' and held <> '' and held = ? and worker_id = ?
        order by due_at, id
        limit ${BLOCKED_BATCH_ROWS})`,
    args: [now, held, workerId],
  };
}

/** running -> pending, in its old position in the queue. A graceful stop does not use up an attempt. */
export function requeueTask(run: TaskRun, now: number): Statement {
  return returnToQueue(run, { sql: "attempt = attempt - 1, run_count = run_count - 1", args: [] }, now);
}

/** pending, scheduled, or a running schedule -> cancelled, as `task cancel` allows (contract 3, Task). */
export function cancelTask(id: string, reason: string, now: number): Statement[] {
  return guard(
    `update task
    set status = 'cancelled', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?
    where id = ? and (status in ('pending', 'scheduled') or status = 'running' and type ${TASK_IS_RECURRING})`,
    [reason, now, id],
    WAKEUP.dispatcher,
  );
}

/** scheduled -> pending by hand. A schedule keeps its next time, a countdown loses it. */
export function runTaskNow(
  { id, run_no }: { id: string; run_no: number },
  depth: number,
  now: number,
): Statement[] {
  return guard(
    `update task
    set status = 'pending', due_at = ?, attempt = 0, run_no = run_no + 1, updated_at = ?,
      next_run_at = iif(type ${TASK_IS_RECURRING}, next_run_at, null), depth = max(depth, ?)
    where id = ? and status = 'scheduled' and run_no = ?`,
    [now, now, depth, id, run_no],
    WAKEUP.dispatcher,
  );
}

/** running -> cancelled after its run was cancelled. A schedule is not changed. */
export function cancelTaskRun(run: TaskRun, reason: string, now: number): Statement {
  const { sql, ...rest } = finishTask(run, "cancelled", reason, now);
  return { sql: `${sql} and type <> 'scheduled'`, ...rest };
}

export type TaskOwner =
  | { session_key: string }
  | { worker_id: string }
  | { session_key: string; worker_id: string }
  | { session_key: string; type: "immediate" };

/** Cancels every active task of the owner, including running ones. Returns their ids and keys. */
export function cancelOwnerTasks(owner: TaskOwner, reason: string, now: number): Statement {
  const { where, args } = buildOwnerCondition(owner);
  return {
    sql: `update task
      set status = 'cancelled', reason = ?, next_run_at = null, due_at = null, queued_at = null, updated_at = ?
      where ${where} and status ${TASK_IS_ACTIVE}
      returning id, session_key, message_id, worker_id, execution_id`,
    args: [reason, now, ...args],
    wakeup: WAKEUP.dispatcher,
  };
}

export function buildOwnerCondition(owner: TaskOwner): { where: string; args: Value[] } {
  const entries = Object.entries(owner);
  return {
    where: entries.map(([name]) => `${name} = ?`).join(" and "),
    args: entries.map(([, value]) => value),
  };
}
