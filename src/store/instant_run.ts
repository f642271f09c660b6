// pending -> completed: runs that begin and end in one commit, many of them in one statement each
import { BELL } from "../base/bells.ts";
import type { Database, Row, Statement, Value } from "./database.ts";
import { guardedRows } from "./database.ts";
import type { ExecutionEnd, NewExecution } from "./execution.ts";

/** A run inside this process that is over, and of which nothing is stored yet. */
export interface InstantRun {
  execution: NewExecution;
  /** What it counts for (contract 14). */
  targets: readonly string[];
  end: Pick<ExecutionEnd, "session_id" | "result" | "exit_code"> & { started_at: number };
  /** The text of its log. */
  log: string;
}

/** What these tasks ask for, by their ids. */
export async function listInstructions(db: Database, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.read<{ id: string; instruction: string } & Row>(
    "select id, instruction from task where id in (select value from json_each(?))",
    [JSON.stringify(ids)],
  );
  return new Map(rows.map(({ id, instruction }) => [id, instruction]));
}

/** The log of a run that was stored with its outcome; null for every other one, whose log is a file. */
export async function findLogText(db: Database, executionId: string): Promise<string | null> {
  const row = await db.first<{ text: string }>("select text from execution_log where execution_id = ?", [
    executionId,
  ]);
  return row?.text ?? null;
}

/** Stores the log of a run with its outcome; one that is there already stays. */
export function insertLogText(executionId: string, text: string): Statement {
  return {
    sql: "insert into execution_log (execution_id, text) values (?, ?) on conflict do nothing",
    args: [executionId, text],
  };
}

/**
 * Everything by which runs begin and end: their tasks, executions, logs and what budgets count. Guarded by all of their tasks being
 * pending: where one is not, none of them was run.
 */
export function storeInstantRuns(runs: readonly InstantRun[], now: number): Statement[] {
  return [
    ...guardedRows(runs.length, endTasks(runs, now)),
    insertExecutions(runs.map(({ execution }) => execution)),
    // Only now: how long each has waited was read as its execution came.
    {
      sql: "update task set due_at = null where id in (select value from json_each(?))",
      args: [JSON.stringify(runs.map(({ execution }) => execution.task_id))],
    },
    {
      sql: `insert into reservation (execution_id, targets, tokens, ms, nano_usd)
        select value ->> 0, value ->> 1, 0, 0, 0 from json_each(?)`,
      args: [rowsOf(runs, ({ execution, targets }) => [execution.execution_id, JSON.stringify(targets)])],
    },
    ...endExecutions(runs, now),
  ];
}

function endTasks(runs: readonly InstantRun[], now: number): Statement {
  return {
    sql: `update task
      set status = 'completed', execution_id = one.value ->> 1, attempt = attempt + 1, run_count = run_count + 1,
        reason = '', next_run_at = null, queued_at = null, updated_at = ?
      from json_each(?) as one
      where task.id = one.value ->> 0 and task.status = 'pending' and task.type = 'immediate'`,
    args: [now, rowsOf(runs, ({ execution: { task_id, execution_id } }) => [task_id, execution_id])],
  };
}

/** The columns of a new execution behind its id. */
const COLUMNS = [
  ...["task_id", "worker_id", "session_key", "message_id", "attempt", "run_id", "worker_name"] as const,
  ...["session_id", "engine", "instruction", "created_at"] as const,
] satisfies (keyof NewExecution)[];

/** Stores executions as they begin, each with the number of the run that its task is at. Also of what ends at once: counters and ledger live on these changes. */
export function insertExecutions(executions: readonly NewExecution[]): Statement {
  return {
    sql: `insert into execution (id, ${COLUMNS.join(", ")}, status, run_no)
      select ${["id", ...COLUMNS].map((_, at) => `one.value ->> ${at}`).join(", ")}, 'pending', task.run_no
      from json_each(?) as one
      cross join task on task.id = one.value ->> 1
      order by one.key`,
    args: [
      JSON.stringify(
        executions.map((execution) => [execution.execution_id, ...COLUMNS.map((name) => execution[name])]),
      ),
    ],
  };
}

/** pending -> completed, for many executions at once, each with its log. Guarded by all of them being pending; they are found by their ids (the plus), however many others are. */
export function endExecutions(runs: readonly Omit<InstantRun, "targets">[], now: number): Statement[] {
  const end = {
    sql: `update execution
      set status = 'completed', session_id = one.value ->> 1, result = one.value ->> 2, exit_code = one.value ->> 3,
        started_at = one.value ->> 4, completed_at = ?
      from json_each(?) as one
      where execution.id = one.value ->> 0 and +execution.status = 'pending'`,
    args: [
      now,
      rowsOf(runs, ({ execution, end }) => [
        execution.execution_id,
        end.session_id,
        end.result,
        end.exit_code,
        end.started_at,
      ]),
    ],
    bell: BELL.budget,
  };
  return [
    ...guardedRows(runs.length, end),
    {
      sql: `insert into execution_log (execution_id, text) select value ->> 0, value ->> 1 from json_each(?)`,
      args: [rowsOf(runs, ({ execution, log }) => [execution.execution_id, log])],
    },
  ];
}

function rowsOf<R>(runs: readonly R[], row: (run: R) => Value[]): string {
  return JSON.stringify(runs.map(row));
}
