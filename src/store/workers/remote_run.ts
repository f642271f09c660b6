// A lease begins with the claim, is renewed by beats, and is over with the outcome, or when the runner is not heard of for too long
import { WAKEUP } from "../../base/wakeups.ts";
import type { Task } from "../../domain/work/task.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";

/** A run that a runner has, with everything that its claim has. */
export interface RemoteRunRow extends Row {
  runner_id: string;
  epoch: number;
  work_dir: string;
  lease_until: number | null;
  events: number;
  reported: number;
  execution_id: string;
  session_key: string;
  worker_id: string;
  task_id: string;
  message_id: string;
  attempt: number;
  run_id: string;
  worker_name: string;
  session_id: string;
  engine: string;
  instruction: string;
  created_at: number;
  started_at: number | null;
  type: Task["type"];
  cron: string;
  time_zone: string;
  deliver_to: string;
  task_attempt: number;
  /** JSON text. */
  verify: string;
  /** JSON list: its worker's own scopes. */
  scopes: string;
}

const COLUMNS = `remote_run.runner_id, remote_run.epoch, remote_run.work_dir, remote_run.lease_until,
  remote_run.events, remote_run.reported,
  execution.id as execution_id, execution.session_key, execution.worker_id, execution.task_id,
  execution.message_id, execution.attempt, execution.run_id, execution.worker_name, execution.session_id,
  execution.engine, execution.instruction, execution.created_at, execution.started_at,
  task.type, task.cron, task.time_zone, task.deliver_to, task.attempt as task_attempt,
  iif(task.verify = 'null', coalesce(worker.verify, 'null'), task.verify) as verify,
  coalesce(worker.scopes, '[]') as scopes
  from remote_run
  join execution on execution.id = remote_run.execution_id
  join task on task.id = execution.task_id
  left join worker on worker.id = execution.worker_id`;

/** The run that a claim request got, or null. */
export function findClaimedRun(
  db: Database,
  runnerId: string,
  requestId: string,
): Promise<RemoteRunRow | null> {
  return db.first<RemoteRunRow>(
    `select ${COLUMNS} where remote_run.runner_id = ? and remote_run.request_id = ?`,
    [runnerId, requestId],
  );
}

/** A run that this runner has or had, or null. */
export function findRemoteRun(
  db: Database,
  runnerId: string,
  executionId: string,
): Promise<RemoteRunRow | null> {
  return db.first<RemoteRunRow>(
    `select ${COLUMNS} where remote_run.execution_id = ? and remote_run.runner_id = ?`,
    [executionId, runnerId],
  );
}

/** A lease as it begins. */
interface NewLease {
  execution_id: string;
  runner_id: string;
  request_id: string;
  epoch: number;
  work_dir: string;
  lease_until: number;
}

/** Gives a run to a runner, guarded by its being the same process still and not draining. */
export function insertLease(lease: NewLease): Statement[] {
  const { runner_id, epoch } = lease;
  return guarded(
    `insert into remote_run (${Object.keys(lease).join(", ")})
    select ${Object.keys(lease).map(() => "?").join(", ")}
    where exists (select 1 from runner where id = ? and epoch = ? and draining = 0)`,
    [...Object.values(lease), runner_id, epoch],
  );
}

/** Where a worker's directory is, from its first run on. Guarded by its not being elsewhere. */
export function setHome(workerId: string, home: string): Statement[] {
  return guarded("update worker set home = ? where id = ? and home in ('', ?)", [home, workerId, home]);
}

/** A run that is to be ended keeps its lease so long: a runner that does not end it loses it. */
const STOPPED_MAX_MS = 300_000;

/** Renews the leases that this process of a runner has on these runs, but for those that should have ended STOPPED_MAX_MS ago. */
export function renewLeases(
  { runner_id, epoch }: { runner_id: string; epoch: number },
  executionIds: readonly string[],
  now: number,
  leaseMs: number,
): Statement {
  return {
    sql: `update remote_run
      set lease_until = ?
      where runner_id = ? and epoch = ? and lease_until > 0
        and execution_id in (select value from json_each(?))
        and (stopped_at is null or stopped_at > ?)`,
    args: [now + leaseMs, runner_id, epoch, JSON.stringify(executionIds), now - STOPPED_MAX_MS],
  };
}

/** After a start of the service: while it was away, no runner could be heard. */
export function renewAllLeases(until: number): Statement {
  return {
    sql: `update remote_run
      set lease_until = ?
      where lease_until > 0 and exists (select 1 from runner where id = remote_run.runner_id)`,
    args: [until],
  };
}

/** A run that a runner has, as a beat answers it. */
interface HeldRun extends Row {
  id: string;
  stop: string;
}

/** The runs that this process of a runner has, and why they are to be ended, if so. */
export function listHeldRuns(db: Database, runnerId: string, epoch: number): Promise<HeldRun[]> {
  return db.read<HeldRun>(
    `select execution.id,
      case when execution.cancelled_by <> '' or task.status = 'cancelled' then 'cancelled'
        else remote_run.stop end as stop
    from remote_run
    join execution on execution.id = remote_run.execution_id
    join task on task.id = execution.task_id
    where remote_run.runner_id = ? and remote_run.epoch = ? and remote_run.lease_until > 0`,
    [runnerId, epoch],
  );
}

/** A directory that has a run. */
export interface BusyPlace extends Row {
  runner_id: string;
  work_dir: string;
}

/** The directories that have a run, of these runners. There are no more than they have slots. */
export function listBusyPlaces(db: Database, runnerIds: readonly string[]): Promise<BusyPlace[]> {
  return db.read<BusyPlace>(
    `select runner_id, work_dir
    from remote_run
    where lease_until is not null and runner_id in (select value from json_each(?))`,
    [JSON.stringify(runnerIds)],
  );
}

/** Notes that reports up to `to` are stored. Guarded by those up to `from` being the last, and by the lease. */
export function noteReports(
  executionId: string,
  { epoch, from, to }: { epoch: number; from: number; to: number },
): Statement[] {
  return guarded(
    `update remote_run set events = ? where execution_id = ? and epoch = ? and events = ? and lease_until > 0`,
    [to, executionId, epoch, from],
  );
}

/** The runner told how a run ended. Guarded by its lease. */
export function endLease(executionId: string, epoch: number): Statement[] {
  return guarded(
    `update remote_run
    set lease_until = null, reported = 1
    where execution_id = ? and epoch = ? and lease_until > 0`,
    [executionId, epoch],
    WAKEUP.dispatcher,
  );
}

/** The lease of a run is over without an outcome. Guarded by that. */
export function loseLease(executionId: string, now: number): Statement[] {
  return guarded(
    "update remote_run set lease_until = null where execution_id = ? and lease_until <= ?",
    [executionId, now],
    WAKEUP.dispatcher,
  );
}

/** Says to its runner that a run is to be ended, and why. */
export function stopRemote(executionId: string, reason: string, now: number): Statement {
  return {
    sql: `update remote_run
      set stop = ?, stopped_at = ?
      where execution_id = ? and lease_until is not null and stop = ''`,
    args: [reason, now, executionId],
  };
}

/** Whether a runner has this run now. */
export async function isRemote(db: Database, executionId: string): Promise<boolean> {
  const sql = "select 1 from remote_run where execution_id = ? and lease_until is not null";
  return await db.first(sql, [executionId]) !== null;
}

/** When the first lease is over, Unix ms; null without any. */
export async function firstLeaseEnd(db: Database): Promise<number | null> {
  const row = await db.first<{ at: number | null }>(
    "select min(lease_until) as at from remote_run where lease_until is not null",
  );
  return row?.at ?? null;
}
