// A lease starts with the claim and is renewed by the runner's heartbeats. It ends with the outcome, or expires when the runner is silent.
import { WAKEUP } from "../../base/wakeups.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { Execution } from "../../domain/work/execution.ts";
import type { Task } from "../../domain/work/task.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import { buildSet, type Database, guard, insertGuarded, type Statement } from "../db/database.ts";

/** A run of a runner with the fields of its claim. */
export interface RemoteRunRow
  extends
    RunIdentity,
    Pick<Execution, "worker_name" | "session_id" | "engine" | "instruction" | "created_at" | "started_at">,
    Pick<Task, "type" | "cron" | "time_zone" | "deliver_to"> {
  runner_id: string;
  epoch: number;
  work_dir: string;
  lease_until: number | null;
  /** The worktree of a worker with a repository, or "". */
  tree_id: string;
  /** The branch before the run, "" before the runner got it. */
  base_commit: string;
  /** The commits that the runner has sent, "" for none. */
  head_commit: string;
  events: number;
  reported: number;
  task_attempt: number;
  /** JSON text. */
  verify: string;
  /** JSON list of its worker's scopes. */
  scopes: string;
}

const COLUMNS = `remote_run.runner_id, remote_run.epoch, remote_run.work_dir, remote_run.lease_until,
  remote_run.base_commit, remote_run.head_commit, remote_run.events, remote_run.reported, execution.tree_id,
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

/** Finds the run that a claim request received, or null. */
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

/** Finds a current or former run of this runner, or null. */
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

interface NewLease {
  execution_id: string;
  runner_id: string;
  request_id: string;
  epoch: number;
  work_dir: string;
  lease_until: number;
}

/** Assigns a run to a runner, guarded by the runner being the same process and not draining. */
export function insertLease(lease: NewLease): Statement[] {
  return insertGuarded("remote_run", { ...lease }, {
    sql: "exists (select 1 from runner where id = ? and epoch = ? and draining = 0)",
    args: [lease.runner_id, lease.epoch],
  });
}

/** Stores the runner that has a worker's directory, at its first run. Guarded by no other runner having it. */
export function claimHome(workerId: string, home: string): Statement[] {
  return guard("update worker set home = ? where id = ? and home in ('', ?)", [home, workerId, home]);
}

/** Lets no run start in a directory that it leaves after a worker without a home got one. */
export function keepHomeless(workerId: string): Statement[] {
  return guard("update worker set home = home where id = ? and home = ?", [workerId, NO_HOME]);
}

/** Lists the lanes with a run on a runner. */
export function listBusyLanes(db: Database): Promise<{ worker_id: string; lane: string }[]> {
  return db.read(
    `select task.worker_id, task.lane
    from remote_run
    join execution on execution.id = remote_run.execution_id
    join task on task.id = execution.task_id and task.lane <> ''
    where remote_run.lease_until is not null`,
  );
}

/** Stores the branch before a run, or the commits after it. Guarded by the lease. */
export function storeRunCommit(
  executionId: string,
  epoch: number,
  set: { base_commit: string } | { head_commit: string },
): Statement[] {
  const { sql, args } = buildSet(set);
  return guard(
    `update remote_run set ${sql} where execution_id = ? and epoch = ? and lease_until > 0`,
    [...args, executionId, epoch],
  );
}

// A run that should end keeps its lease this long. Then a runner that does not end it loses it.
const STOPPED_MAX_MS = 300_000;

/**
 * Renews the leases of this runner for these runs, except those that should have ended STOPPED_MAX_MS ago. Runs of an earlier process have
 * no lease, see replaceRunnerProcess().
 */
export function renewLeases(
  runnerId: string,
  executionIds: readonly string[],
  now: number,
  leaseMs: number,
): Statement {
  return {
    sql: `update remote_run
      set lease_until = ?
      where runner_id = ? and lease_until > 0
        and execution_id in (select value from json_each(?))
        and (stopped_at is null or stopped_at > ?)`,
    args: [now + leaseMs, runnerId, JSON.stringify(executionIds), now - STOPPED_MAX_MS],
  };
}

/** Renews all leases after a start of the service, because runners could not report during the downtime. */
export function renewAllLeases(until: number): Statement {
  return {
    sql: `update remote_run
      set lease_until = ?
      where lease_until > 0 and exists (select 1 from runner where id = remote_run.runner_id)`,
    args: [until],
  };
}

/** A current run of a runner, and the reason to stop it, or "". */
interface LeasedRun {
  id: string;
  stop: string;
}

export function listRunnerRuns(db: Database, runnerId: string): Promise<LeasedRun[]> {
  return db.read<LeasedRun>(
    `select execution.id,
      case when execution.cancelled_by <> '' or task.status = 'cancelled' then 'cancelled'
        else remote_run.stop end as stop
    from remote_run
    join execution on execution.id = remote_run.execution_id
    join task on task.id = execution.task_id
    where remote_run.runner_id = ? and remote_run.lease_until > 0`,
    [runnerId],
  );
}

export interface BusyWorkDir {
  runner_id: string;
  work_dir: string;
}

/** Lists the busy work directories of these runners, at most one per slot. */
export function listBusyWorkDirs(db: Database, runnerIds: readonly string[]): Promise<BusyWorkDir[]> {
  return db.read<BusyWorkDir>(
    `select runner_id, work_dir
    from remote_run
    where lease_until is not null and runner_id in (select value from json_each(?))`,
    [JSON.stringify(runnerIds)],
  );
}

/** Stores the number of the last report, guarded by the number before, and by the lease. */
export function storeReportNumber(
  executionId: string,
  { epoch, from, to }: { epoch: number; from: number; to: number },
): Statement[] {
  return guard(
    `update remote_run set events = ? where execution_id = ? and epoch = ? and events = ? and lease_until > 0`,
    [to, executionId, epoch, from],
  );
}

/** Ends a lease with the runner's report of the outcome. Guarded by the lease. */
export function endLease(executionId: string, epoch: number): Statement[] {
  return guard(
    `update remote_run
    set lease_until = null, reported = 1
    where execution_id = ? and epoch = ? and lease_until > 0`,
    [executionId, epoch],
    WAKEUP.dispatcher,
  );
}

/** Ends an expired lease without an outcome. Guarded by its expiry. */
export function expireLease(executionId: string, now: number): Statement[] {
  return guard(
    "update remote_run set lease_until = null where execution_id = ? and lease_until <= ?",
    [executionId, now],
    WAKEUP.dispatcher,
  );
}

export function stopRemote(executionId: string, reason: string, now: number): Statement {
  return {
    sql: `update remote_run
      set stop = ?, stopped_at = ?
      where execution_id = ? and lease_until is not null and stop = ''`,
    args: [reason, now, executionId],
  };
}

export async function isRemote(db: Database, executionId: string): Promise<boolean> {
  const sql = "select 1 from remote_run where execution_id = ? and lease_until is not null";
  return await db.first(sql, [executionId]) !== null;
}

/** Returns the earliest expiry of all leases in Unix ms, or null. */
/** Lists the runs that runners have. */
export function listOpenRemoteRuns(db: Database): Promise<{ execution_id: string; worker_id: string }[]> {
  return db.read(
    `select execution.id as execution_id, execution.worker_id
    from remote_run join execution on execution.id = remote_run.execution_id
    where remote_run.lease_until is not null`,
  );
}

export function findFirstLeaseEnd(db: Database): Promise<number | null> {
  return db.readValue<number>("select min(lease_until) as at from remote_run where lease_until is not null");
}
