import type { Database } from "../db/database.ts";
import { SCHEDULES_ARE_PAUSED } from "../db/setting.ts";
import { MESSAGE_IS_UNROUTED, TASK_IS_ACTIVE, TASK_IS_QUEUED } from "../db/status_sql.ts";

interface DatabaseFacts {
  sqlite: string;
  bytes: number;
  /** The unused part. */
  freeBytes: number;
}

/** Returns the version of SQLite, which a package update can change (reliability DUR-7). */
export async function readSqliteVersion(db: Database): Promise<string> {
  return await db.readValue<string>("select sqlite_version()") ?? "";
}

export async function isReachable(db: Database): Promise<boolean> {
  return await db.first("select 1 as one").then(() => true, () => false);
}

export async function readDatabaseFacts(db: Database): Promise<DatabaseFacts> {
  const row = await db.first<{ sqlite: string; pages: number; free: number; size: number }>(
    `select sqlite_version() as sqlite,
      (select page_count from pragma_page_count()) as pages,
      (select freelist_count from pragma_freelist_count()) as free,
      (select page_size from pragma_page_size()) as size`,
  );
  const { sqlite = "", pages = 0, free = 0, size = 0 } = row ?? {};
  return { sqlite, bytes: pages * size, freeBytes: free * size };
}

/** Returns the first faults of the database, [] when it is sound. Blocks for about 1 ms per MB. */
export async function listFaults(db: Database): Promise<string[]> {
  const rows = await db.read<{ quick_check: string }>("pragma quick_check(5)");
  return rows.map((row) => row.quick_check).filter((text) => text !== "ok");
}

/** Number of workers of an engine, "" for the default. */
interface EngineUse {
  engine: string;
  workers: number;
  /** The name of one of them. */
  name: string;
}

export function listEngineUses(db: Database): Promise<EngineUse[]> {
  return db.read<EngineUse>(
    `select engine, count(*) as workers, min(name) as name
    from worker
    where runs_on = '[]'
    group by engine
    order by engine`,
  );
}

interface FailingSchedule {
  id: string;
  failures_in_row: number;
  last_error: string;
}

/** Lists schedules whose latest run failed, most failures first. */
export function listFailingSchedules(db: Database, limit: number): Promise<FailingSchedule[]> {
  return db.read<FailingSchedule>(
    `select id, failures_in_row, last_error
    from task
    where failures_in_row > 0 and status ${TASK_IS_ACTIVE}
    order by failures_in_row desc
    limit ?`,
    [limit],
  );
}

// A higher number is not exact.
const BLOCKED_COUNT_MAX = 1_000;

/** The amount of waiting work, and the start of the wait (Unix ms, null without waiting work). */
interface Backlog {
  /** Due tasks of active workers that have no run and are not blocked. */
  pending: number;
  pendingSince: number | null;
  /** Tasks that a budget, a provider or a missing runner blocks, BLOCKED_COUNT_MAX at most. */
  held: number;
  /** Messages without a route. */
  unrouted: number;
  unroutedSince: number | null;
  /** Due tasks that the scheduler has not fired, except paused tasks. */
  overdue: number;
  overdueSince: number | null;
  /** Outbound messages that wait for delivery. */
  undelivered: number;
  /** Open questions. */
  questions: number;
  questionsSince: number | null;
}

/** Tasks that no runner and no launcher takes now. */
interface Unplaced {
  held: string;
  reason: string;
  tasks: number;
}

/** Lists what tasks wait for that no runner and no launcher takes now, with their number, by the index of blocked tasks. */
export function listUnplaced(db: Database, limit: number): Promise<Unplaced[]> {
  return db.read<Unplaced>(
    `select held, reason, count(*) as tasks
    from (
      select held, reason
      from task
      where status = 'pending' and held <> ''
        and (held > 'launcher:' and held < 'launcher;' or held > 'runner:' and held < 'runner;')
      limit ${BLOCKED_COUNT_MAX})
    group by held, reason
    order by tasks desc
    limit ?`,
    [limit],
  );
}

/** Measures the waiting work. Every number comes from an index over open work. */
export async function readBacklog(db: Database, now: number): Promise<Backlog> {
  // A select without a table has exactly one row.
  return await db.first<Backlog>(
    `select
      (select count(*) from task join worker on worker.id = worker_id and worker.paused = 0
        where ${TASK_IS_QUEUED} and due_at <= ?) as pending,
      (select min(due_at) from task join worker on worker.id = worker_id and worker.paused = 0
        where ${TASK_IS_QUEUED} and due_at <= ?) as "pendingSince",
      (select count(*) from (select 1 from task where status = 'pending' and held <> '' limit ${BLOCKED_COUNT_MAX})) as held,
      (select count(*) from inbound_message where status ${MESSAGE_IS_UNROUTED}) as unrouted,
      (select min(received_at) from inbound_message where status ${MESSAGE_IS_UNROUTED}) as "unroutedSince",
      (select count(*) from task where next_run_at is not null and paused = 0 and next_run_at <= ?
        and not ${SCHEDULES_ARE_PAUSED}) as overdue,
      (select min(next_run_at) from task where next_run_at is not null and paused = 0 and next_run_at <= ?
        and not ${SCHEDULES_ARE_PAUSED}) as "overdueSince",
      (select count(*) from outbound_message where status = 'failed' and due_at is not null and due_at > 0) as undelivered,
      (select count(*) from question where status = 'open') as questions,
      (select min(created_at) from question where status = 'open') as "questionsSince"`,
    [now, now, now, now],
  ) as Backlog;
}
