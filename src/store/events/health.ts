import type { Database, Row } from "../db/database.ts";
import { SCHEDULES_ARE_PAUSED } from "../db/setting.ts";
import { MESSAGE_IS_UNROUTED, TASK_IS_ACTIVE } from "../db/status_sql.ts";

/** What is known of the database itself. */
interface DatabaseFacts {
  sqlite: string;
  bytes: number;
  /** How much of it is unused. */
  freeBytes: number;
}

/** Version of SQLite. It is logged at the start, because an update of a package can change it (reliability DUR-7). */
export async function sqliteVersion(db: Database): Promise<string> {
  return (await db.first<{ version: string }>("select sqlite_version() as version"))?.version ?? "";
}

/** Whether the database answers. */
export async function isReachable(db: Database): Promise<boolean> {
  return await db.first("select 1 as one").then(() => true, () => false);
}

/** Version and size of the database. */
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

/** The first faults in the whole file; [] when it is sound. Blocks for about 1 ms per MB. */
export async function listFaults(db: Database): Promise<string[]> {
  const rows = await db.read<{ quick_check: string }>("pragma quick_check(5)");
  return rows.map((row) => row.quick_check).filter((text) => text !== "ok");
}

/** How many workers run on an engine; "" is the default. */
interface EngineUse extends Row {
  engine: string;
  workers: number;
  /** One of them. */
  name: string;
}

/** The engines that workers name. */
export function listEngineUses(db: Database): Promise<EngineUse[]> {
  return db.read<EngineUse>(
    `select engine, count(*) as workers, min(name) as name
    from worker
    where runs_on = '[]'
    group by engine
    order by engine`,
  );
}

/** A schedule whose latest runs failed. */
interface FailingSchedule extends Row {
  id: string;
  failures_in_row: number;
  last_error: string;
}

/** Schedules whose latest run failed, the worst first, and at most `limit` of them. */
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

// More are not counted one by one.
const HELD_SHOWN = 1_000;

/** How much work waits, and since when (Unix ms; null when nothing waits). */
interface Backlog {
  /** Due tasks of workers that are not paused, without a run yet, and held by nothing but the queue. */
  pending: number;
  pendingSince: number | null;
  /** Tasks that a budget, a provider or a missing runner holds; HELD_SHOWN at most. */
  held: number;
  /** Messages that are not routed yet. */
  unrouted: number;
  unroutedSince: number | null;
  /** Tasks whose time has come and that the scheduler has not fired; none that are paused. */
  overdue: number;
  overdueSince: number | null;
  /** Outbound messages that wait for delivery. */
  undelivered: number;
  /** Questions that nobody has answered. */
  questions: number;
  questionsSince: number | null;
}

/** How much work waits. Every number comes from an index over open work. */
export async function readBacklog(db: Database, now: number): Promise<Backlog> {
  const row = await db.first<Record<string, number | null>>(
    `select
      (select count(*) from task join worker on worker.id = worker_id and worker.paused = 0
        where status = 'pending' and held = '' and due_at <= ?) as pending,
      (select min(due_at) from task join worker on worker.id = worker_id and worker.paused = 0
        where status = 'pending' and held = '' and due_at <= ?) as pending_since,
      (select count(*) from (select 1 from task where status = 'pending' and held <> '' limit ${HELD_SHOWN})) as held,
      (select count(*) from inbound_message where status ${MESSAGE_IS_UNROUTED}) as unrouted,
      (select min(received_at) from inbound_message where status ${MESSAGE_IS_UNROUTED}) as unrouted_since,
      (select count(*) from task where next_run_at is not null and paused = 0 and next_run_at <= ?
        and not ${SCHEDULES_ARE_PAUSED}) as overdue,
      (select min(next_run_at) from task where next_run_at is not null and paused = 0 and next_run_at <= ?
        and not ${SCHEDULES_ARE_PAUSED}) as overdue_since,
      (select count(*) from outbound_message where status = 'failed' and due_at is not null and due_at > 0) as undelivered,
      (select count(*) from question where status = 'open') as questions,
      (select min(created_at) from question where status = 'open') as questions_since`,
    [now, now, now, now],
  );
  return {
    pending: row?.pending ?? 0,
    pendingSince: row?.pending_since ?? null,
    held: row?.held ?? 0,
    unrouted: row?.unrouted ?? 0,
    unroutedSince: row?.unrouted_since ?? null,
    overdue: row?.overdue ?? 0,
    overdueSince: row?.overdue_since ?? null,
    undelivered: row?.undelivered ?? 0,
    questions: row?.questions ?? 0,
    questionsSince: row?.questions_since ?? null,
  };
}
