import { ISOLATION_EFFECTIVE } from "../db/setting.ts";
import type { Task } from "../../domain/work/task.ts";
import type { TimedTaskType } from "../../domain/work/task_type.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import type { EngineTask } from "../../domain/workers/engine_task.ts";
import type { Database } from "../db/database.ts";
import { SCHEDULES_ARE_PAUSED } from "../db/setting.ts";
import { TASK_IS_QUEUED, TASK_IS_RECURRING } from "../db/status_sql.ts";

/** The next task of a worker with the fields that a claim needs. */
export interface WaitingTask
  extends
    Pick<Task, "id" | "worker_id" | "message_id" | "session_key" | "attempt">,
    Pick<Task, "type" | "cron" | "time_zone" | "deliver_to" | "reason">,
    Pick<Worker, "work_dir" | "engine" | "home">,
    EngineTask {
  worker_name: string;
  due_at: number;
  /** The check of its work as JSON: the task's, else the worker's. */
  verify: string;
  /** The block that the last check found, '' without one. */
  held: string;
  held_until: number | null;
  /** Tasks with the same one run one after another. '' for workers that have one directory. */
  lane: string;
  /** 1 when its worker has a repository, so that its lane has a worktree. */
  has_repo: number;
  /** The worktree of its lane, or null before the first run. */
  tree_id: string | null;
  /** JSON list of the labels of its worker. */
  runs_on: string;
  /** 1 when it has a gate. */
  gated: number;
  /** 1 when its worker has *:*. */
  admin: number;
  /** 1 when its worker runs on runners and names a secret in its variables or MCP servers. */
  secret: number;
  /** 1 when no person waits for it: a schedule, or a task of an agent (contract 14). */
  patient: number;
}

export const WORK_DIRS_PER_ROUND = 250;

/** Condition on tasks that no person waits for. */
export const IS_PATIENT = "(task.type <> 'immediate' or task.created_by like 'worker:%')";

// The runs of the next attempt so far. A limit, an unusable engine and an orderly stop end a run, but not its attempt.
const OF_ATTEMPT = `from execution
    where task_id = task.id and execution.run_no = task.run_no and execution.attempt = task.attempt + 1`;

const COLUMNS = `task.id, worker.id as worker_id, worker.name as worker_name, worker.work_dir, worker.engine,
  task.message_id, task.session_key, task.attempt, task.due_at, task.type, task.cron, task.time_zone,
  task.deliver_to, iif(task.verify = 'null', worker.verify, task.verify) as verify,
  task.lane, worker.repo <> 'null' as has_repo, iif(task.lane = '', null, (
    select id from tree where tree.worker_id = worker.id and tree.lane = task.lane)) as tree_id,
  task.held, task.held_until, task.reason, worker.runs_on, worker.home, task.gate <> 'null' as gated,
  iif(worker.runs_on = '[]', 0, exists (select 1 from json_each(worker.scopes) where value = '*:*')) as admin,
  iif(worker.runs_on = '[]' and worker.fallback = 0, 0,
    json_extract(${ISOLATION_EFFECTIVE}, '$') <> 'namespace') as boxed,
  iif(worker.runs_on = '[]', worker.fallback, 0) as fallback,
  iif(worker.fallback = 0, '[]', (select json_group_array(key) from json_each(worker.env))) as env_names,
  worker.mcp, worker.skills <> '[]' as has_skills,
  task.gate <> 'null' or iif(task.verify = 'null', worker.verify, task.verify) <> 'null' as has_commands,
  iif(worker.fallback = 0, '', coalesce((
    select engine ${OF_ATTEMPT} and engine_use = 'acted' order by id desc limit 1), '')) as acted_engine,
  iif(worker.fallback = 0, '[]', (
    select json_group_array(engine) ${OF_ATTEMPT} and engine_use = 'unusable')) as unusable_engines,
  iif(worker.runs_on = '[]', 0, exists (
    select 1 from json_each(worker.env) where substr(value, 1, 7) = 'secret:')
    or instr(worker.mcp, '":"secret:') > 0) as secret,
  ${IS_PATIENT} as patient`;

/** Start and size of a page. The tasks after it belong to the next page. */
interface Window<From> {
  after: From;
  limit: number;
}

/** A page of next tasks, and the start of the next page or null. */
interface NextTasks<From> {
  heads: WaitingTask[];
  next: From | null;
}

// The left joins leave null where a worker is paused or none of its tasks may start.
function listPresent<T extends WaitingTask>(rows: readonly T[]): WaitingTask[] {
  return rows.filter(({ id, worker_id }: { id: string | null; worker_id: string | null }) =>
    id !== null && worker_id !== null
  );
}

const FIRST_DUE = `task.id = (
      select id
      from task
        where ${TASK_IS_QUEUED} and (worker_id, lane) = (next_lane.worker_id, next_lane.lane) and due_at <= ?
      order by due_at, id
      limit 1)`;

/** A worker and a lane of its tasks. A worker with one directory has one lane, ''. */
export interface LanePosition {
  worker_id: string;
  lane: string;
}

/** The position before all lanes. */
export const FIRST_LANE: LanePosition = { worker_id: "", lane: "" };

/**
 * Lists the first due and unblocked task of each lane of the active workers, oldest first. The query steps from lane to lane through the
 * index, so its cost depends on the number of lanes with tasks, not on the number of tasks.
 */
export async function listNextTasks(
  db: Database,
  now: number,
  { after, limit }: Window<LanePosition> = { after: FIRST_LANE, limit: WORK_DIRS_PER_ROUND },
): Promise<NextTasks<LanePosition>> {
  const rows = await db.read<WaitingTask & { position: number; next_worker_id: string; next_lane: string }>(
    `with recursive next_lane (id, worker_id, lane, position) as (
      select * from (
        select id, worker_id, lane, 1
        from task
        where ${TASK_IS_QUEUED} and (worker_id, lane) > (?, ?)
        order by worker_id, lane
        limit 1)
      union all
      select later.id, later.worker_id, later.lane, position + 1
      from next_lane
      join task as later on later.id = (
        select id
        from task
        where ${TASK_IS_QUEUED} and (worker_id, lane) > (next_lane.worker_id, next_lane.lane)
        order by worker_id, lane
        limit 1)
      limit ?
    )
    select next_lane.position, next_lane.worker_id as next_worker_id, next_lane.lane as next_lane, ${COLUMNS}
    from next_lane
    left join worker on worker.id = next_lane.worker_id and worker.paused = 0
    left join task on ${FIRST_DUE}
    order by task.due_at, task.id`,
    [after.worker_id, after.lane, limit, now],
  );
  const last = rows.find(({ position }) => position === limit);
  const next = last === undefined ? null : { worker_id: last.next_worker_id, lane: last.next_lane };
  return { heads: listPresent(rows), next };
}

/** Lists the first due task of each lane among the oldest `limit` due tasks, oldest first, without blocked tasks. */
export function listOldestNextTasks(db: Database, now: number, limit: number): Promise<WaitingTask[]> {
  return db.read<WaitingTask>(
    `with next_lane (worker_id, lane) as (
      select distinct worker_id, lane
      from (
        select worker_id, lane, held
        from task
        where status = 'pending' and open_parents = 0 and due_at <= ?
        order by due_at
        limit ?)
      where held = ''
    )
    select ${COLUMNS}
    from next_lane
    join worker on worker.id = next_lane.worker_id and worker.paused = 0
    join task on ${FIRST_DUE}
    order by task.due_at, task.id`,
    [now, limit, now],
  );
}

/** A position in the order of blocked tasks. */
export interface BlockedPosition {
  held: string;
  worker_id: string;
}

/** The position before all blocked tasks. */
export const FIRST_BLOCKED_POSITION: BlockedPosition = { held: "", worker_id: "" };

/** Lists the first blocked task of each worker and block. When that task may start, the block has ended. */
export async function listNextBlockedTasks(
  db: Database,
  { after, limit }: Window<BlockedPosition> = { after: FIRST_BLOCKED_POSITION, limit: WORK_DIRS_PER_ROUND },
): Promise<NextTasks<BlockedPosition>> {
  // Usually no task is blocked, and this query runs before every claim.
  const any = await db.first("select 1 as one from task where status = 'pending' and held <> '' limit 1");
  if (any === null) return { heads: [], next: null };
  const rows = await db.read<WaitingTask & { position: number; task_worker_id: string }>(
    `with recursive first_blocked (id, position) as (
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
        where later.status = 'pending' and later.held <> ''
          and (later.held, later.worker_id) > (now.held, now.worker_id)
        order by later.held, later.worker_id, later.due_at, later.id
        limit 1), position + 1
      from first_blocked
      join task as now on now.id = first_blocked.id
      limit ?
    )
    select first_blocked.position, task.worker_id as task_worker_id, ${COLUMNS}
    from first_blocked
    join task on task.id = first_blocked.id
    left join worker on worker.id = task.worker_id and worker.paused = 0
    order by task.due_at, task.id`,
    [after.held, after.worker_id, limit],
  );
  const last = rows.find(({ position }) => position === limit);
  const next = last === undefined ? null : { held: last.held, worker_id: last.task_worker_id };
  return { heads: listPresent(rows), next };
}

/** Lists the waiting tasks of these launches (contract 33). */
export function listLaunchedTasks(db: Database, launchIds: readonly string[]): Promise<WaitingTask[]> {
  return db.read<WaitingTask>(
    `select ${COLUMNS}
    from launch
    join task on task.id = launch.task_id and task.status = 'pending' and task.open_parents = 0
    join worker on worker.id = task.worker_id and worker.paused = 0
    where launch.id in (select value from json_each(?)) and launch.state in ('starting', 'launched')
    order by task.due_at, task.id`,
    [JSON.stringify(launchIds)],
  );
}

/** Returns the time at which the next pending task falls due after `now`, or null. */
export function findNextDueAt(db: Database, now: number): Promise<number | null> {
  return db.readValue<number>(
    "select min(due_at) as at from task where status = 'pending' and open_parents = 0 and due_at > ?",
    [now],
  );
}

export interface DueTask
  extends
    Pick<Task, "id" | "status" | "cron" | "time_zone" | "until" | "overlap" | "execution_id">,
    Pick<Task, "session_key" | "worker_id" | "message_id"> {
  type: TimedTaskType;
  next_run_at: number;
  /** The occurrence that waits for the end of the current run. */
  queued_at: number | null;
  /** 1 while its gate runs. */
  gating: number;
}

const DUE_COLUMNS =
  `id, type, status, cron, time_zone, session_key, worker_id, message_id, next_run_at, until,
  overlap, execution_id, queued_at,
  exists (select 1 from occurrence where task_id = task.id and run_no = task.run_no and status = 'gating') as gating`;

/** Lists tasks whose next time is not after `now`, the earliest first. Empty while schedules are paused. */
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

/** Lists schedules with a queued occurrence whose previous run has ended. */
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

/** Returns the earliest next time of all tasks. Null without any, and while schedules are paused. */
export function findEarliestRunAt(db: Database): Promise<number | null> {
  return db.readValue<number>(
    `select min(next_run_at) as at
    from task
    where next_run_at is not null and paused = 0 and not ${SCHEDULES_ARE_PAUSED}`,
  );
}

/** Lists schedules after (`nextRunAt`, `id`) in that order. */
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
