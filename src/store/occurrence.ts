// One firing of a schedule or a countdown: which run it became, and what its gate said (contract 15).
import type { OccurrenceStatus } from "../domain/vocabulary.ts";
import type { Statement } from "./database.ts";

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

/** pending -> running or gating: a run is on its way. */
export function startOccurrence(run: OccurrenceRun, to: "gating" | "running"): Statement {
  return {
    sql: `update occurrence
      set status = ?, execution_id = ?, run_id = ?, gate_exit = null, error = ''
      where task_id = ? and run_no = (select run_no from task where id = ?) and status = 'pending'`,
    args: [to, run.execution_id, run.run_id, run.task_id, run.task_id],
  };
}

/** gating or running -> completed, failed or cancelled, with its execution; or back to pending. */
export function endOccurrence(
  executionId: string,
  to: Extract<OccurrenceStatus, "pending" | "completed" | "failed" | "cancelled">,
  now: number,
): Statement {
  return {
    sql: `update occurrence
      set status = ?, ended_at = iif(? = 'pending', null, ?)
      where execution_id = ? and execution_id <> ''`,
    args: [to, to, now, executionId],
  };
}

/** pending or gating -> cancelled: its task was cancelled, or another time takes its place. One that runs ends with its run. */
export function cancelOccurrence(taskId: string, now: number): Statement {
  return {
    sql: `update occurrence
      set status = 'cancelled', ended_at = ?
      where task_id = ? and status in ('pending', 'gating')`,
    args: [now, taskId],
  };
}
