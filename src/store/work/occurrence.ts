// An occurrence is one firing of a schedule or a countdown, with its run and the result of its gate (contract 15).
import { WAKEUP } from "../../base/wakeups.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { OccurrenceStatus } from "../../domain/call/vocabulary.ts";
import { type Database, guard, type Statement } from "../db/database.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { buildOwnerCondition, type TaskOwner } from "./task_transitions.ts";

const MINUTE_MS = 60_000;

/**
 * Stores that a task fired. The batch has to increment `run_no` of the task first. A second occurrence of a schedule in one minute
 * fails the batch (reliability CRN-1).
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

interface OccurrenceRun {
  task_id: string;
  execution_id: string;
  run_id: string;
}

const IS_CURRENT = "task_id = ? and run_no = (select run_no from task where id = ?)";

/** pending -> running: the run starts. After a gate this changes nothing, because endGate() has already set the status. */
export function startOccurrence(run: OccurrenceRun): Statement {
  return {
    sql: `update occurrence
      set status = 'running', execution_id = ?, run_id = ?, error = ''
      where ${IS_CURRENT} and status = 'pending'`,
    args: [run.execution_id, run.run_id, run.task_id, run.task_id],
  };
}

/** pending -> gating, guarded. Stores the ids of the run that follows if the gate passes (contract 15). */
export function startGate(run: OccurrenceRun): Statement[] {
  return guard(
    `update occurrence
    set status = 'gating', execution_id = ?, run_id = ?, gate_exit = null, error = ''
    where ${IS_CURRENT} and status = 'pending'`,
    [run.execution_id, run.run_id, run.task_id, run.task_id],
  );
}

interface GateEnd {
  to: Extract<OccurrenceStatus, "pending" | "running" | "gated" | "failed" | "cancelled">;
  /** null: the gate ended without an exit code. */
  exit: number | null;
  error: string;
}

/** gating -> running, gated, failed, cancelled, or pending for a retry. Guarded: the task must still wait and have the same worker. */
export function endGate(
  { task_id, execution_id, worker_id }: { task_id: string; execution_id: string; worker_id: string },
  { to, exit, error }: GateEnd,
  now: number,
): Statement[] {
  return guard(
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

/** gating -> cancelled together with the task, or gating -> pending when the task still waits because its worker changed. */
export function dropGate(taskId: string, executionId: string, now: number): Statement {
  const taskWaits =
    "exists (select 1 from task where id = task_id and status = 'pending' and run_no = occurrence.run_no)";
  return {
    sql: `update occurrence
      set status = iif(${taskWaits}, 'pending', 'cancelled'), ended_at = iif(${taskWaits}, null, ?)
      where task_id = ? and execution_id = ? and status = 'gating'`,
    args: [now, taskId, executionId],
    wakeup: WAKEUP.dispatcher,
  };
}

/** running -> completed, failed or cancelled together with the execution, or running -> pending when the task waits for a retry. */
export function endOccurrence(
  executionId: string,
  to: Extract<OccurrenceStatus, "pending" | "completed" | "failed" | "cancelled">,
  now: number,
): Statement {
  const taskWaits = "exists (select 1 from task where id = task_id and status = 'pending')";
  return {
    sql: `update occurrence
      set status = iif(? = 'pending' and not ${taskWaits}, 'cancelled', ?), ended_at = iif(? = 'pending' and ${taskWaits}, null, ?)
      where execution_id = ? and execution_id <> ''`,
    args: [to, to, to, now, executionId],
  };
}

/** pending -> cancelled together with the task. When a gate or run is active, its end changes the occurrence. */
export function cancelOccurrence(taskId: string, now: number): Statement {
  return {
    sql: `update occurrence
      set status = 'cancelled', ended_at = ?
      where ${IS_CURRENT} and status = 'pending'`,
    args: [now, taskId, taskId],
    wakeup: WAKEUP.gate,
  };
}

/** Does the same as cancelOccurrence() for every active task of an owner. Has to precede the statement that cancels the tasks. */
export function cancelOwnerOccurrences(owner: TaskOwner, now: number): Statement {
  const { where, args } = buildOwnerCondition(owner);
  return {
    sql: `update occurrence
      set status = 'cancelled', ended_at = ?
      where status = 'pending' and (task_id, run_no) in (
        select id, run_no from task where ${where} and status ${TASK_IS_ACTIVE})`,
    args: [now, ...args],
    wakeup: WAKEUP.gate,
  };
}

/** Returns whether the task still waits for its gate and no later occurrence replaces this one. */
export async function isGateWanted(db: Database, taskId: string, executionId: string): Promise<boolean> {
  return await db.first(
    `select 1 as one
    from occurrence
    join task on task.id = occurrence.task_id and task.run_no = occurrence.run_no
    where occurrence.task_id = ? and occurrence.execution_id = ? and occurrence.status = 'gating'
      and task.status = 'pending' and (task.overlap <> 'replace' or task.queued_at is null)`,
    [taskId, executionId],
  ) !== null;
}

/** An open gate, which the rescuer ends after a start of the service. */
interface OpenGate extends RunIdentity {
  /** null when the task is gone. */
  task_status: string | null;
  /** Time of the task's last change, or of the occurrence's creation when the task is gone. */
  since: number;
}

// More than the number of slots, so the limit omits no gate.
const GATE_ROWS = 10_000;

/** Lists every open gate with the current state of its task. */
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

/** Finds the occurrence of a task with this run number, or null. */
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
