import type { Task } from "../../domain/work/task.ts";
import type { TimedTaskType } from "../../domain/work/task_type.ts";
import type { Database, Row } from "../db/database.ts";
import { SCHEDULES_ARE_PAUSED } from "../db/setting.ts";
import { TASK_IS_RECURRING } from "../db/status_sql.ts";

/** The head of a lane: the next task of a worker, with what a claim needs. */
export interface WaitingTask extends Row {
  id: string;
  worker_id: string;
  worker_name: string;
  work_dir: string;
  engine: string;
  message_id: string;
  session_key: string;
  attempt: number;
  due_at: number;
  type: Task["type"];
  cron: string;
  time_zone: string;
  deliver_to: string;
  /** JSON text of what checks its work: its own, or its worker's. */
  verify: string;
  /** What held it when it was looked at last, and until when; '' when nothing did. */
  held: string;
  held_until: number | null;
  reason: string;
  /** JSON list of labels: where its worker runs; and the runner that has its directory. */
  runs_on: string;
  home: string;
  /** 1 when a gate decides about it first. */
  gated: number;
  /** 1 when its worker holds *:*. */
  admin: number;
  /** 1 when no person waits for it: a schedule, or a task that an agent made (contract 14). */
  patient: number;
}

/** How many lanes are looked at in one round. */
export const LANES_AT_ONCE = 250;

/** What no person waits for. */
export const IS_PATIENT = "(task.type <> 'immediate' or task.created_by like 'worker:%')";

const COLUMNS = `task.id, worker.id as worker_id, worker.name as worker_name, worker.work_dir, worker.engine,
  task.message_id, task.session_key, task.attempt, task.due_at, task.type, task.cron, task.time_zone,
  task.deliver_to, iif(task.verify = 'null', worker.verify, task.verify) as verify,
  task.held, task.held_until, task.reason, worker.runs_on, worker.home, task.gate <> 'null' as gated,
  iif(worker.runs_on = '[]', 0, exists (select 1 from json_each(worker.scopes) where value = '*:*')) as admin,
  ${IS_PATIENT} as patient`;

/** Where a look begins, and how many rows it has at most; the lanes that are behind them come with the next one. */
interface Window<From> {
  after: From;
  limit: number;
}

/** What a look has found, and where the next one begins; null when there is nothing behind it. */
interface Found<From> {
  heads: WaitingTask[];
  next: From | null;
}

// The lane is there, and perhaps none of its tasks may start: then there is no task, or no worker.
function headsOf<T extends WaitingTask>(rows: readonly T[]): WaitingTask[] {
  return rows.filter(({ id, worker_id }: { id: string | null; worker_id: string | null }) =>
    id !== null && worker_id !== null
  );
}

const LANE_HEAD = `task.id = (
      select id
      from task
      where status = 'pending' and held = '' and worker_id = lane.worker_id and due_at <= ?
      order by due_at, id
      limit 1)`;

/**
 * The first due task of each worker that is not paused and that nothing holds, oldest first, of so many workers. The query steps from
 * worker to worker through the index, so its cost grows with the workers that have work and not with the number of tasks.
 */
export async function listLaneHeads(
  db: Database,
  now: number,
  { after, limit }: Window<string> = { after: "", limit: LANES_AT_ONCE },
): Promise<Found<string>> {
  const rows = await db.read<WaitingTask & { lane: string | null }>(
    `with recursive lane (worker_id) as (
      select min(worker_id) from task where status = 'pending' and held = '' and worker_id > ?
      union all
      select (
        select min(worker_id) from task where status = 'pending' and held = '' and worker_id > lane.worker_id)
      from lane
      where lane.worker_id is not null
      limit ?
    )
    select lane.worker_id as lane, ${COLUMNS}
    from lane
    left join worker on worker.id = lane.worker_id and worker.paused = 0
    left join task on ${LANE_HEAD}
    order by task.due_at, task.id`,
    [after, limit, now],
  );
  const last = rows.reduce((most, { lane }) => lane !== null && lane > most ? lane : most, "");
  // The step behind the last lane finds none.
  const isWhole = rows.some(({ lane }) => lane === null);
  return { heads: headsOf(rows), next: isWhole ? null : last };
}

/** Of the workers that have the oldest tasks that nothing holds, the first due task of each, oldest first: as far as so many tasks go. */
export function listOldestHeads(db: Database, now: number, limit: number): Promise<WaitingTask[]> {
  return db.read<WaitingTask>(
    `with lane (worker_id) as (
      select distinct worker_id
      from (
        select worker_id, held
        from task
        where status = 'pending' and due_at <= ?
        order by due_at
        limit ?)
      where held = ''
    )
    select ${COLUMNS}
    from lane
    join worker on worker.id = lane.worker_id and worker.paused = 0
    join task on ${LANE_HEAD}
    order by task.due_at, task.id`,
    [now, limit, now],
  );
}

/** A place in the order of the tasks that something holds. */
export interface HeldPlace {
  held: string;
  worker_id: string;
}

/** Before all of them. */
export const FIRST_HELD: HeldPlace = { held: "", worker_id: "" };

/**
 * Of the tasks that something holds, the first of each worker for each thing that holds, so many of them: when that one may start, the
 * thing is over. However many wait behind them, they cost nothing.
 */
export async function listHeldHeads(
  db: Database,
  { after, limit }: Window<HeldPlace> = { after: FIRST_HELD, limit: LANES_AT_ONCE },
): Promise<Found<HeldPlace>> {
  const any = await db.first("select 1 as one from task where status = 'pending' and held <> '' limit 1");
  // Most of the time nothing is held, and this is asked before every claim.
  if (any === null) return { heads: [], next: null };
  const rows = await db.read<WaitingTask & { place: number; lane: string }>(
    `with recursive head (id, place) as (
      select (
        select id
        from task
        where status = 'pending' and held <> '' and (held, worker_id) > (?, ?)
        order by held, worker_id, due_at, id
        limit 1), 1
      union all
      select (
        select later.id
        from task as later
        where later.status = 'pending' and later.held <> '' and (later.held, later.worker_id) > (now.held, now.worker_id)
        order by later.held, later.worker_id, later.due_at, later.id
        limit 1), place + 1
      from head
      join task as now on now.id = head.id
      limit ?
    )
    select head.place, task.worker_id as lane, ${COLUMNS}
    from head
    join task on task.id = head.id
    left join worker on worker.id = task.worker_id and worker.paused = 0
    order by task.due_at, task.id`,
    [after.held, after.worker_id, limit],
  );
  const last = rows.find(({ place }) => place === limit);
  const next = last === undefined ? null : { held: last.held, worker_id: last.lane };
  return { heads: headsOf(rows), next };
}

/** When the next pending task falls due after `now`, or null. */
export async function nextDueAt(db: Database, now: number): Promise<number | null> {
  const row = await db.first<{ at: number | null }>(
    "select min(due_at) as at from task where status = 'pending' and due_at > ?",
    [now],
  );
  return row?.at ?? null;
}

/** A task whose time has come. */
export interface DueTask extends Row {
  id: string;
  type: TimedTaskType;
  status: string;
  cron: string;
  time_zone: string;
  session_key: string;
  worker_id: string;
  message_id: string;
  next_run_at: number;
  until: number | null;
  overlap: Task["overlap"];
  execution_id: string | null;
  /** The time that waits for the end of the present turn. */
  queued_at: number | null;
  /** 1 while its gate runs. */
  gating: number;
}

const DUE_COLUMNS =
  `id, type, status, cron, time_zone, session_key, worker_id, message_id, next_run_at, until,
  overlap, execution_id, queued_at,
  exists (select 1 from occurrence where task_id = task.id and run_no = task.run_no and status = 'gating') as gating`;

/** Tasks whose next time is not after `now`, the longest waiting first; none while schedules are paused. */
export function listDueTasks(db: Database, now: number, limit: number): Promise<DueTask[]> {
  return db.read<DueTask>(
    `select ${DUE_COLUMNS}
    from task
    where next_run_at is not null and paused = 0 and next_run_at <= ? and not ${SCHEDULES_ARE_PAUSED}
    order by next_run_at
    limit ?`,
    [now, limit],
  );
}

/** Schedules whose turn has ended and for which a time waits. */
export function listQueuedTasks(db: Database, limit: number): Promise<(DueTask & { queued_at: number })[]> {
  return db.read<DueTask & { queued_at: number }>(
    `select ${DUE_COLUMNS}
    from task
    where queued_at is not null and +status = 'scheduled' and +paused = 0 and not ${SCHEDULES_ARE_PAUSED}
    order by queued_at
    limit ?`,
    [limit],
  );
}

/** The earliest next time of all tasks; null without any, and while schedules are paused. */
export async function earliestRunAt(db: Database): Promise<number | null> {
  const row = await db.first<{ at: number | null }>(
    `select min(next_run_at) as at
    from task
    where next_run_at is not null and paused = 0 and not ${SCHEDULES_ARE_PAUSED}`,
  );
  return row?.at ?? null;
}

/** Schedules after (`nextRunAt`, `id`), ordered by both. */
export function listSchedulesAfter(
  db: Database,
  nextRunAt: number,
  id: string,
  limit: number,
): Promise<DueTask[]> {
  return db.read<DueTask>(
    `select ${DUE_COLUMNS}
    from task
    where next_run_at is not null and paused = 0 and type ${TASK_IS_RECURRING} and (next_run_at, id) > (?, ?)
    order by next_run_at, id
    limit ?`,
    [nextRunAt, id, limit],
  );
}
