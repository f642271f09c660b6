import type { Day } from "../../domain/workers/month.ts";
import type { QuarterUsage, QuarterWaits, UsageRow, WorkerActivity } from "../../domain/workers/usage.ts";
import type { Database } from "../db/database.ts";
import { limitToConversation, type Where } from "../db/filter.ts";
import { TASK_IS_QUEUED } from "../db/status_sql.ts";
import { QUARTER_MS } from "../events/overview.ts";

// sum() returns null when all values are null, so unreported numbers stay null.
const SUMS = `sum(executions) as executions, sum(failed) as failed,
  round(sum(ms) / 60000.0, 3) as minutes, sum(input_tokens) as input_tokens,
  sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd`;

/** Sums the use since a time by worker. The name of a deleted worker comes from its executions. */
export function listUsageByWorker(db: Database, since: number): Promise<UsageRow[]> {
  return db.read(
    `select worker_id as key, coalesce(
        (select name from worker where worker.id = worker_id),
        (select worker_name from execution where execution.worker_id = usage.worker_id order by id desc limit 1),
        '') as name, ${SUMS}
    from usage
    where bucket_start >= ?
    group by worker_id
    order by sum(executions) desc, key`,
    [toQuarter(since)],
  );
}

/** Sums the use since a time by department. A worker counts in each of its departments. */
export function listUsageByDepartment(db: Database, since: number): Promise<UsageRow[]> {
  return db.read(
    `select department.id as key, department.name as name, ${SUMS}
    from usage
    join worker_department on worker_department.worker_id = usage.worker_id
    join department on department.id = worker_department.department_id
    where bucket_start >= ?
    group by department.id
    order by sum(executions) desc, name`,
    [toQuarter(since)],
  );
}

/** Sums the use since a time by engine or conversation, the thousand with the most executions, limited to `boundTo` (contract 2.8). */
export function listUsageByExecution(
  db: Database,
  column: "engine" | "session_key",
  since: number,
  boundTo: string | null,
): Promise<UsageRow[]> {
  const where: Where = { conditions: ["completed_at >= ?"], args: [since] };
  limitToConversation(where, "session_key", boundTo);
  // Columns outside of this index would cost a read of each row.
  return db.read(
    `select ${column} as key, '' as name, count(*) as executions, sum(status = 'failed') as failed,
      round(sum(max(0, completed_at - coalesce(started_at, completed_at))) / 60000.0, 3) as minutes,
      sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd
    from execution indexed by execution_completed
    where ${where.conditions.join(" and ")}
    group by ${column}
    order by count(*) desc, key
    limit 1000`,
    where.args,
  );
}

/** Sums the use since a time by quarter of an hour, oldest first, without empty quarters. */
export async function listUsageByQuarter(db: Database, since: number): Promise<QuarterUsage[]> {
  return await db.read(
    `select bucket_start * ${QUARTER_MS} as at, ${SUMS}
    from usage
    where bucket_start >= ?
    group by bucket_start
    order by bucket_start`,
    [toQuarter(since)],
  );
}

/** Returns the waits of runs since a time by the quarter of an hour of their start, oldest first. */
export async function listWaitsByQuarter(db: Database, since: number): Promise<QuarterWaits[]> {
  return await db.read(
    `select bucket_start * ${QUARTER_MS} as at, runs, ms, longest_ms
    from queue_wait_stats
    where bucket_start >= ?
    order by bucket_start`,
    [toQuarter(since)],
  );
}

/** The current work of a worker. `deleted` is 0 or 1, and without a run the fields of the last run are null. */
interface ActivityRow extends Pick<WorkerActivity, "worker_id" | "worker_name" | "pending" | "blocked"> {
  deleted: number;
  last_id: string | null;
  last_status: "pending" | "running" | "completed" | "failed";
  last_at: number;
}

/** Lists the current work of every worker, and of every deleted worker with usage since a time. */
export function listWorkerActivity(db: Database, since: number): Promise<ActivityRow[]> {
  return db.read<ActivityRow>(
    `with one (id) as (select id from worker union select worker_id from usage where bucket_start >= ?)
    select one.id as worker_id, coalesce(worker.name, last.worker_name, '') as worker_name, worker.id is null as deleted,
      (select count(*) from task where worker_id = one.id and status = 'pending') as pending,
      (select count(*) from task where worker_id = one.id and status = 'pending')
      - (select count(*) from task indexed by task_lane
        where worker_id = one.id and ${TASK_IS_QUEUED}) as blocked,
      last.id as last_id, last.status as last_status, last.created_at as last_at
    from one
    left join worker on worker.id = one.id
    left join execution as last on last.id = (
      select id from execution where worker_id = one.id order by id desc limit 1)
    order by deleted, worker.name_key, worker_name, worker_id`,
    [toQuarter(since)],
  );
}

/** Sums the use of each worker on each of these days, oldest day first. */
export function listUsageByWorkerAndDay(
  db: Database,
  days: readonly Day[],
): Promise<(Omit<UsageRow, "key" | "name"> & { worker_id: string; day: string })[]> {
  const spans = days.map(({ day, start, end }) => ({ day, from: toQuarter(start), to: toQuarter(end) }));
  return db.read(
    `select worker_id, span.value ->> 'day' as day, ${SUMS}
    from json_each(?) as span
    cross join usage on bucket_start >= span.value ->> 'from' and bucket_start < span.value ->> 'to'
    group by span.key, worker_id
    order by span.key`,
    [JSON.stringify(spans)],
  );
}

function toQuarter(at: number): number {
  return Math.floor(at / QUARTER_MS);
}
