// stored -> starting -> launched -> claimed -> ended: runs that the commands of launchers bring to another scheduler (contract 33)
import { WAKEUP } from "../../base/wakeups.ts";
import { getLaunchHold, type LaunchState } from "../../domain/work/launch.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { buildPrune } from "../db/retention.ts";
import { type Database, guard, insertGuarded, insertRow, type Statement } from "../db/database.ts";
import { record, recordTransition } from "../events/journal.ts";

/** A launch that has not ended, with what the launch stage needs of its task. */
export interface OpenLaunch {
  id: string;
  task_id: string;
  worker_id: string;
  session_key: string;
  launcher: string;
  state: Exclude<LaunchState, "ended">;
  job: string;
  job_state: string;
  reason: string;
  created_at: number;
  deadline_at: number;
  /** The lane of its task. */
  lane: string;
  /** 1 while its task waits for it. */
  waits: number;
  /** The block and reason of its task. */
  held: string;
  task_reason: string;
  /** Labels that its worker asks for, as JSON. */
  labels: string;
  /** Resources that its worker asks for, as JSON. */
  resources: string;
  /** When its runner made its first request, or null. */
  seen_at: number | null;
  /** Whether the run has ended, and whether its runner reported the end. */
  run_ended: number;
  reported: number;
  /** Time of the request to end the run, or null. */
  stopped_at: number | null;
}

/** Lists the launches that have not ended, oldest first. */
export function listOpenLaunches(db: Database): Promise<OpenLaunch[]> {
  return db.read<OpenLaunch>(
    `select launch.id, launch.task_id, launch.worker_id, coalesce(task.session_key, '') as session_key,
      launch.launcher, launch.state, launch.job, launch.job_state, launch.reason, launch.created_at,
      launch.deadline_at, coalesce(task.lane, '') as lane, coalesce(task.status = 'pending', 0) as waits,
      coalesce(task.held, '') as held, coalesce(task.reason, '') as task_reason,
      coalesce(runner.labels, '[]') as labels, coalesce(worker.resources, 'null') as resources,
      runner.last_seen_at as seen_at, execution.completed_at is not null as run_ended,
      coalesce(remote_run.reported, 0) as reported, remote_run.stopped_at
    from launch
    left join task on task.id = launch.task_id
    left join worker on worker.id = launch.worker_id
    left join runner on runner.id = launch.id
    left join execution on execution.id = launch.id
    left join remote_run on remote_run.execution_id = launch.id
    where launch.ended_at is null
    order by launch.id`,
  );
}

type LaunchTask = Pick<OpenLaunch, "id" | "task_id" | "worker_id" | "session_key" | "launcher">;

interface NewLaunch extends LaunchTask {
  labels: readonly string[];
  allow_admin: boolean;
  max: number;
  deadline_at: number;
}

/**
 * Stores a launch and the runner of its token. Guarded by the task waiting without a launch, and by fewer than `max` open launches of the
 * launcher. A second launch of the task fails the batch.
 */
export function insertLaunch(launch: NewLaunch, now: number): Statement[] {
  const { id, task_id, worker_id, launcher, labels, allow_admin, max, deadline_at } = launch;
  const name = getLaunchRunnerName(launcher, id);
  return [
    ...insertGuarded("launch", {
      id,
      task_id,
      worker_id,
      launcher,
      state: "stored",
      created_at: now,
      deadline_at,
    }, {
      sql: `exists (select 1 from task where id = ? and status = 'pending' and open_parents = 0)
        and (select count(*) from launch where launcher = ? and ended_at is null) < ?`,
      args: [task_id, launcher, max],
    }, WAKEUP.launches),
    insertRow("runner", {
      ...{ id, name, name_key: normalizeName(name), labels: JSON.stringify(labels), allow_admin, launcher },
      created_at: now,
    }),
    recordLaunch({ ...launch, kind: "launch.created", data: {} }, now),
  ];
}

/** Returns the name of the runner that a launch starts, which no list shows. */
export function getLaunchRunnerName(launcher: string, id: string): string {
  return `${launcher} ${id}`;
}

/** Blocks the task of a launch with this reason. */
export function noteLaunch({ id, task_id, launcher }: LaunchTask, reason: string, now: number): Statement {
  return {
    sql: `update task set held = ?, held_until = null, reason = ?, updated_at = ?
      where id = ? and status = 'pending' and open_parents = 0
        and exists (select 1 from launch where id = ? and ended_at is null)`,
    args: [getLaunchHold(launcher), reason, now, task_id, id],
  };
}

/** stored -> starting: from here on the command may have run. */
export function startLaunch(id: string, deadlineAt: number): Statement[] {
  return guard("update launch set state = 'starting', deadline_at = ? where id = ? and state = 'stored'", [
    deadlineAt,
    id,
  ]);
}

/** starting -> launched. Also stores the job of a launch that was claimed or ended meanwhile. */
export function storeStarted(
  launch: LaunchTask,
  { job, reason, deadlineAt }: { job: string; reason: string; deadlineAt: number },
  now: number,
): Statement[] {
  return recordTransition(
    guard(
      `update launch
      set job = ?, reason = ?, state = iif(state = 'starting', 'launched', state),
        deadline_at = iif(state = 'starting' and deadline_at > 0, ?, deadline_at)
      where id = ? and state in ('starting', 'claimed', 'ended')`,
      [job, reason, deadlineAt, launch.id],
    ),
    now,
    buildEvent({ ...launch, kind: "launch.started", data: { job } }),
  );
}

/** Stores why the start of a launch is unknown, and when it ends at the latest. */
export function storeStartProblem(id: string, reason: string, deadlineAt: number): Statement {
  return {
    sql:
      "update launch set reason = ?, deadline_at = min(deadline_at, ?) where id = ? and state = 'starting'",
    args: [reason, deadlineAt, id],
  };
}

/** Stores the state of a job, and when the launch ends. */
export function storeJobState(id: string, jobState: string, deadlineAt: number): Statement {
  return {
    sql:
      "update launch set job_state = ?, deadline_at = ? where id = ? and state = 'launched' and deadline_at > 0",
    args: [jobState, deadlineAt, id],
  };
}

/** Lets the launch stage end a launch whose runner cannot have the run. */
export function rejectLaunch(id: string, reason: string): Statement {
  return {
    sql:
      "update launch set deadline_at = 0, reason = ? where id = ? and state in ('starting', 'launched') and deadline_at > 0",
    args: [reason, id],
    wakeup: WAKEUP.launches,
  };
}

// A rejected launch keeps its deadline of 0. One without a reason was not refused by its runner.
const IS_REFUSED = "deadline_at = 0 and reason <> '' and ended_at is not null";

/** An ended launch whose runner could not do the run of this worker. */
export interface Refusal extends Pick<OpenLaunch, "worker_id" | "launcher" | "reason"> {
  ended_at: number;
}

/** Lists the refusals after `since`, oldest first, of workers that were not changed since and had no run by this launcher. */
export function listRefusals(db: Database, since: number): Promise<Refusal[]> {
  return db.read<Refusal>(
    `select worker_id, launcher, reason, ended_at
    from launch
    join worker on worker.id = worker_id and worker.updated_at <= ended_at
    where ${IS_REFUSED} and ended_at > ?
    order by ended_at`,
    [since],
  );
}

/**
 * starting or launched -> claimed, in the batch of the claim. Guarded. Ends the failed starts of its launcher, and the refusals of its
 * worker there.
 */
export function claimLaunch(id: string): Statement[] {
  return [
    ...guard(
      "update launch set state = 'claimed' where id = ? and state in ('starting', 'launched') and deadline_at > 0",
      [id],
      WAKEUP.launches,
    ),
    {
      sql: `update launcher set failures = 0, retry_at = null, last_error = ''
        where name = (select launcher from launch where id = ?) and paused_at is null`,
      args: [id],
    },
    {
      sql: `update launch set deadline_at = ended_at
        where ${IS_REFUSED} and (worker_id, launcher) = (select worker_id, launcher from launch where id = ?)`,
      args: [id],
    },
  ];
}

interface LaunchEnd {
  reason: string;
  /** Whether the job may still exist, so that the cancel command has to run. */
  cancels: boolean;
  /** Whether the runner of a claimed launch may still repeat its last report. */
  keepsRunner?: boolean;
}

/** Ends a launch in the state that was read, and its token. Its task returns to the queue. Guarded. */
export function endLaunch(
  launch: LaunchTask & Pick<OpenLaunch, "state">,
  end: LaunchEnd,
  now: number,
): Statement[] {
  const { id, state, task_id, launcher } = launch;
  const { reason, cancels, keepsRunner = false } = end;
  return [
    ...guard(
      "update launch set state = 'ended', ended_at = ?, reason = ?, cancel_at = ? where id = ? and state = ?",
      [now, reason, cancels ? now : null, id, state],
      WAKEUP.launches,
    ),
    ...(keepsRunner ? [] : [{ sql: "delete from runner where id = ? and launcher <> ''", args: [id] }]),
    {
      sql:
        "update task set held = '', held_until = null, reason = '', updated_at = ? where id = ? and status = 'pending' and held = ?",
      args: [now, task_id, getLaunchHold(launcher)],
      wakeup: WAKEUP.dispatcher,
    },
    recordLaunch({ ...launch, kind: "launch.ended", data: { reason } }, now),
  ];
}

/** Ends a launch and its run, because two processes claimed with its token. */
export function disputeLaunch(
  launch: LaunchTask & Pick<OpenLaunch, "state">,
  detail: string,
  now: number,
): Statement[] {
  return [
    ...endLaunch(launch, { reason: detail, cancels: true }, now),
    {
      sql: "update remote_run set lease_until = 0 where execution_id = ? and lease_until is not null",
      args: [launch.id],
      wakeup: WAKEUP.rescuer,
    },
    recordLaunch({ ...launch, kind: "launch.problem", data: { detail } }, now),
  ];
}

/** An ended launch whose job has to be canceled. */
export interface LeftJob extends LaunchTask {
  job: string;
  cancel_at: number;
  cancels: number;
}

export function listLeftJobs(db: Database): Promise<LeftJob[]> {
  return db.read<LeftJob>(
    `select launch.id, launch.task_id, launch.worker_id, coalesce(task.session_key, '') as session_key, launcher, job,
      cancel_at, cancels
    from launch
    left join task on task.id = launch.task_id
    where cancel_at is not null
    order by cancel_at`,
  );
}

/** Stores an attempt to cancel a job. `nextAt` is null after the last one. */
export function storeCancel({ id }: LeftJob, nextAt: number | null): Statement {
  return { sql: "update launch set cancels = cancels + 1, cancel_at = ? where id = ?", args: [nextAt, id] };
}

/** Asks for the cancel command of a claimed launch whose runner does not end its run. */
export function cancelClaimed(id: string, now: number): Statement {
  return {
    sql:
      "update launch set cancel_at = ? where id = ? and state = 'claimed' and cancels = 0 and cancel_at is null",
    args: [now, id],
  };
}

export function recordLaunchProblem(launch: LaunchTask, detail: string, now: number): Statement {
  return recordLaunch({ ...launch, kind: "launch.problem", data: { detail } }, now);
}

/** Finds an open launch, or null. */
export function findOpenLaunch(
  db: Database,
  id: string,
): Promise<LaunchTask & Pick<OpenLaunch, "state"> | null> {
  return db.first(
    `select launch.id, launch.task_id, launch.worker_id, launcher, state, coalesce(task.session_key, '') as session_key
    from launch left join task on task.id = launch.task_id
    where launch.id = ? and ended_at is null`,
    [id],
  );
}

/** Prunes ended launches without an execution. The others are deleted with it. */
export const pruneLaunches = buildPrune(
  "launch",
  "ended_at < ? and cancel_at is null and not exists (select 1 from execution where execution.id = launch.id)",
);

/** Deletes the runners of launches that ended before `until`. Their last reports can no longer be repeated. */
export function deleteLaunchRunners(until: number): Statement {
  return {
    sql: `delete from runner
      where launcher <> '' and not exists (
        select 1 from launch where launch.id = runner.id and (ended_at is null or ended_at > ?))`,
    args: [until],
  };
}

export async function hasLaunchRunners(db: Database): Promise<boolean> {
  return await db.first("select 1 as one from runner where launcher <> '' limit 1") !== null;
}

interface LaunchEvent extends LaunchTask {
  kind: "launch.created" | "launch.started" | "launch.ended" | "launch.problem";
  data: Record<string, unknown>;
}

function buildEvent({ kind, id, task_id, worker_id, session_key, launcher, data }: LaunchEvent) {
  return { kind, task_id, worker_id, session_key, data: { launcher, launch_id: id, ...data } };
}

function recordLaunch(event: LaunchEvent, now: number): Statement {
  return record(now, buildEvent(event));
}
