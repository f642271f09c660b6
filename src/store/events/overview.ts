import {
  INSTRUCTION_SHOWN_MAX,
  type Overview,
  type RecentExecution,
  recentExecutionSchema,
} from "../../domain/system/system.ts";
import type { Database, Value } from "../db/database.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { buildJsonSql } from "../db/json_projection.ts";
import { formatJson, type Json } from "../../domain/call/json.ts";

/** The length of a usage bucket, a quarter of an hour. */
export const QUARTER_MS = 900_000;

const RECENT_JSON = buildJsonSql("execution", recentExecutionSchema, {
  instruction: `substr(execution.instruction, 1, ${INSTRUCTION_SHOWN_MAX})`,
});

/** Counts workers by status. Does not depend on the number of executions. */
export async function countWorkers(db: Database): Promise<Overview["workers"]> {
  const row = await db.first<
    { total: number; paused: number; working: number; both: number; waiting: number }
  >(
    `select
      (select value from counter where name = 'worker' and key = 'all') as total,
      (select value from counter where name = 'worker' and key = 'paused') as paused,
      count(distinct worker.id) as working,
      count(distinct iif(worker.paused, worker.id, null)) as both,
      count(distinct (
        select worker_id
        from question
        where question.execution_id = execution.id and question.execution_id <> '' and +question.waiting = 1)) as waiting
    from execution
    join worker on worker.id = execution.worker_id
    where execution.status ${EXECUTION_IS_OPEN}`,
  );
  const { total = 0, paused = 0, working = 0, both = 0, waiting = 0 } = row ?? {};
  // A paused worker with a run counts as working, as in its status.
  return {
    total,
    idle: total - working - (paused - both),
    working: working - waiting,
    waiting,
    paused: paused - both,
  };
}

/** Returns the newest executions as a JSON array, limited to `boundTo`. */
export async function findRecentExecutions(
  db: Database,
  boundTo: string | null,
  limit: number,
): Promise<Json<RecentExecution[]>> {
  const args: Value[] = boundTo === null ? [limit] : [boundTo, limit];
  return await db.readValue<Json<RecentExecution[]>>(
    `select json_group_array(json(json)) as json
    from (
      select ${RECENT_JSON} as json
      from execution
      ${boundTo === null ? "" : "where session_key = ?"}
      order by id desc
      limit ?)`,
    args,
  ) ?? formatJson([]);
}

type WorkerUsage = Omit<Overview["usage_today"]["workers"][number], "worker_name">;

/** Sums the usage since a time by worker, most executions first. */
export function listUsage(db: Database, since: number): Promise<WorkerUsage[]> {
  return db.read<WorkerUsage>(
    `select worker_id, sum(executions) as executions, sum(failed) as failed, sum(input_tokens) as input_tokens,
      sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd
    from usage
    where bucket_start >= ?
    group by worker_id
    order by sum(executions) desc, worker_id`,
    [Math.floor(since / QUARTER_MS)],
  );
}

/** Maps ids of workers to their names. The name of a deleted worker comes from its executions. */
export async function findWorkerNames(db: Database, ids: string[]): Promise<Map<string, string>> {
  const rows = await db.read<{ id: string; name: string }>(
    `select value as id, coalesce(
      (select name from worker where worker.id = value),
      (select worker_name from execution where worker_id = value order by execution.id desc limit 1),
      '') as name
    from json_each(?)`,
    [JSON.stringify(ids)],
  );
  return new Map(rows.map((row) => [row.id, row.name]));
}
