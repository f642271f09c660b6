// One firing of a schedule or a countdown: which run it became, and what its gate said (contract 15).
import { WAKEUP } from "../../base/wakeups.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { OccurrenceStatus } from "../../domain/call/vocabulary.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { ownedBy, type TaskOwner } from "./task_transitions.ts";

const MINUTE_MS = 60_000;

/**
 * Stores that a task fired, behind the move that counted its run. For a time of a schedule a second row for the same minute
 * makes its batch fail (reliability CRN-1); by hand it may run as often as somebody asks.
 */
export function insertOccurrence(taskId: string, dueAt: number, by: "time" | "hand", now: number): Statement {
  return {
    sql: `insert into occurrence (task_id, run_no, minute, due_at, status, created_at)
      select id, run_no, ?, ?, 'pending', ?
      from task
      where id = ?`,
    args: [by === "time" ? Math.floor(dueAt / MINUTE_MS) : null, dueAt, now, taskId],
  };
}

/** The ids of what an occurrence became. */
interface OccurrenceRun {
  task_id: string;
  execution_id: string;
  run_id: string;
}

// The present firing of a task.
const OF_TASK = "task_id = ? and run_no = (select run_no from task where id = ?)";

/** pending -> running: a run is on its way. One whose gate has passed runs already. */
export function startOccurrence(run: OccurrenceRun): Statement {
  return {
    sql: `update occurrence
      set status = 'running', execution_id = ?, run_id = ?, error = ''
      where ${OF_TASK} and status = 'pending'`,
    args: [run.execution_id, run.run_id, run.task_id, run.task_id],
  };
}

/** pending -> gating: its gate is about to run; guarded. The ids are those of the run that it may become (contract 15). */
export function startGate(run: OccurrenceRun): Statement[] {
  return guarded(
    `update occurrence
    set status = 'gating', execution_id = ?, run_id = ?, gate_exit = null, error = ''
    where ${OF_TASK} and status = 'pending'`,
    [run.execution_id, run.run_id, run.task_id, run.task_id],
  );
}

/** How a gate ended. */
interface GateEnd {
  to: Extract<OccurrenceStatus, "pending" | "running" | "gated" | "failed" | "cancelled">;
  /** null: it did not come to an exit code. */
  exit: number | null;
  error: string;
}

/**
 * gating -> running, gated, failed, cancelled, or pending once more; guarded by its task's waiting for it, and by the worker that it was
 * started for.
 */
export function endGate(
  { task_id, execution_id, worker_id }: { task_id: string; execution_id: string; worker_id: string },
  { to, exit, error }: GateEnd,
  now: number,
): Statement[] {
  return guarded(
    `update occurrence
    set status = ?, gate_exit = ?, error = ?, ended_at = ?
    where task_id = ? and execution_id = ? and status = 'gating'
      and exists (
        select 1
        from task
        where id = task_id and status = 'pending' and run_no = occurrence.run_no and worker_id = ?)`,
    [to, exit, error, to === "running" || to === "pending" ? null : now, task_id, execution_id, worker_id],
  );
}

/** gating -> cancelled with its task; pending again when that waits still: it has another worker now. */
export function dropGate(taskId: string, executionId: string, now: number): Statement {
  const waits =
    "exists (select 1 from task where id = task_id and status = 'pending' and run_no = occurrence.run_no)";
  return {
    sql: `update occurrence
      set status = iif(${waits}, 'pending', 'cancelled'), ended_at = iif(${waits}, null, ?)
      where task_id = ? and execution_id = ? and status = 'gating'`,
    args: [now, taskId, executionId],
    wakeup: WAKEUP.dispatcher,
  };
}

/** running -> completed, failed or cancelled, with its execution; or back to pending, if its task waits for that. */
export function endOccurrence(
  executionId: string,
  to: Extract<OccurrenceStatus, "pending" | "completed" | "failed" | "cancelled">,
  now: number,
): Statement {
  const again = "exists (select 1 from task where id = task_id and status = 'pending')";
  return {
    sql: `update occurrence
      set status = iif(? = 'pending' and not ${again}, 'cancelled', ?), ended_at = iif(? = 'pending' and ${again}, null, ?)
      where execution_id = ? and execution_id <> ''`,
    args: [to, to, to, now, executionId],
  };
}

/** pending -> cancelled: its task was cancelled. One whose gate or run goes on ends with that. */
export function cancelOccurrence(taskId: string, now: number): Statement {
  return {
    sql: `update occurrence
      set status = 'cancelled', ended_at = ?
      where ${OF_TASK} and status = 'pending'`,
    args: [now, taskId, taskId],
    wakeup: WAKEUP.gate,
  };
}

/** As cancelOccurrence(), for every active task of an owner. Put it before the statement that cancels them. */
export function cancelOccurrencesOf(owner: TaskOwner, now: number): Statement {
  const { where, args } = ownedBy(owner);
  return {
    sql: `update occurrence
      set status = 'cancelled', ended_at = ?
      where status = 'pending' and (task_id, run_no) in (
        select id, run_no from task where ${where} and status ${TASK_IS_ACTIVE})`,
    args: [now, ...args],
    wakeup: WAKEUP.gate,
  };
}

/** Whether a gate still decides about something: its task waits for it, and no other time takes its place. */
export async function isGateWanted(db: Database, taskId: string, executionId: string): Promise<boolean> {
  const row = await db.first(
    `select 1 as one
    from occurrence
    join task on task.id = occurrence.task_id and task.run_no = occurrence.run_no
    where occurrence.task_id = ? and occurrence.execution_id = ? and occurrence.status = 'gating'
      and task.status = 'pending' and (task.overlap <> 'replace' or task.queued_at is null)`,
    [taskId, executionId],
  );
  return row !== null;
}

/** A gate that has not ended, as the rescuer finds it after a start. */
interface OpenGate extends Row, RunIdentity {
  /** Of its task; null when that is gone. */
  task_status: string | null;
  /** When its task was changed last, which is not before the gate began. */
  since: number;
}

// More than there are slots.
const GATE_ROWS = 10_000;

/** Every gate that has not ended, with its task as it is now. */
export function listOpenGates(db: Database): Promise<OpenGate[]> {
  return db.read<OpenGate>(
    `select occurrence.task_id, occurrence.execution_id, occurrence.run_id,
      coalesce(task.updated_at, occurrence.created_at) as since,
      coalesce(task.worker_id, '') as worker_id, coalesce(task.session_key, '') as session_key,
      coalesce(task.message_id, '') as message_id, coalesce(task.attempt, 0) as attempt, task.status as task_status
    from occurrence indexed by occurrence_gating
    left join task on task.id = occurrence.task_id and task.run_no = occurrence.run_no
    where occurrence.status = 'gating'
    limit ${GATE_ROWS}`,
  );
}

/** How the firing of a task with this number went, or null. */
export function findOccurrence(
  db: Database,
  taskId: string,
  runNo: number,
): Promise<{ status: OccurrenceStatus; due_at: number; error: string } | null> {
  return db.first<{ status: OccurrenceStatus; due_at: number; error: string }>(
    "select status, due_at, error from occurrence where task_id = ? and run_no = ?",
    [taskId, runNo],
  );
}
