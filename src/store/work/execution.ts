import { WAKEUP } from "../../base/wakeups.ts";
import type { VerifyResult } from "../../domain/work/command.ts";
import { type Execution, executionSchema, type Usage, usageSchema } from "../../domain/work/execution.ts";
import { launchSchema } from "../../domain/work/launch.ts";
import type { EngineUse } from "../../domain/call/vocabulary.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { RunBinding } from "../../domain/call/scope.ts";
import { buildSet, type Database, guard, type Statement, type Value } from "../db/database.ts";
import { parseNullableJson, readBoundJson } from "../db/list.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";
import { selectCounted } from "./gateway_use.ts";
import type { Json } from "../../domain/call/json.ts";

const JSON_SQL = buildJsonSql("execution", executionSchema, {
  usage: buildJsonSql("execution", usageSchema),
  launch: `json((select ${buildJsonSql("launch", launchSchema)} from launch where launch.id = execution.id))`,
  verify: "json_object('status', execution.verify_status, 'attempts', execution.verify_attempts)",
});

export const EXECUTIONS = {
  table: "execution",
  json: JSON_SQL,
  texts: ["instruction", "result", "error", "session_id"],
};

export type NewExecution =
  & RunIdentity
  & Pick<Execution, "worker_name" | "session_id" | "engine" | "fallback_from" | "instruction" | "created_at">
  & Partial<Pick<Execution, "tree_id">>;

/** Stores a new execution as pending, with its task's current run number. */
export function insertExecution({ execution_id, ...rest }: NewExecution): Statement {
  const row = { id: execution_id, ...rest };
  return {
    sql: `insert into execution (${Object.keys(row).join(", ")}, status, run_no)
      values (${Object.keys(row).map(() => "?").join(", ")}, 'pending',
        coalesce((select run_no from task where id = ?), 0))`,
    args: [...Object.values(row), row.task_id],
  };
}

/** Finds the last execution of one run of a task, or null (contract 8.9). */
export async function findTaskRun(db: Database, taskId: string, runNo: number): Promise<Execution | null> {
  const rest = "from execution where task_id = ? and run_no = ? order by id desc limit 1";
  return parseNullableJson(await readJson(db, JSON_SQL, rest, [taskId, runNo]));
}

/** pending -> running: the engine has started. */
export function startExecution(id: string, now: number): Statement[] {
  const sql = "update execution set status = 'running', started_at = ? where id = ? and status = 'pending'";
  return guard(sql, [now, id]);
}

export function setSession(id: string, sessionId: string): Statement {
  return {
    sql: `update execution set session_id = ? where id = ? and status ${EXECUTION_IS_OPEN}`,
    args: [sessionId, id],
  };
}

export interface ExecutionEnd
  extends Pick<Execution, "session_id" | "result" | "error" | "failure" | "exit_code" | "usage"> {
  engine_use?: EngineUse | "";
  /** The start, if it is not stored yet. */
  started_at?: number | null;
  status: "completed" | "failed";
  /** Absent if the work was not checked. */
  verify?: VerifyResult | undefined;
}

/** pending or running -> completed or failed, once. */
export function finishExecution(id: string, end: ExecutionEnd, now: number): Statement[] {
  const { status, session_id, result, error, failure, exit_code, verify } = end;
  const verified = { verify_status: verify?.status ?? null, verify_attempts: verify?.attempts ?? 0 };
  const columns = { status, session_id, result, error, failure, exit_code, ...verified };
  const set = buildSet({ ...columns, engine_use: end.engine_use ?? "", completed_at: now });
  const usage = buildUsageSet("execution", end.usage);
  return guard(
    `update execution
    set ${set.sql}, ${usage.sql}, started_at = coalesce(started_at, ?)
    where id = ? and status ${EXECUTION_IS_OPEN}`,
    [...set.args, ...usage.args, end.started_at ?? null, id],
    WAKEUP.budget,
  );
}

/**
 * Builds the usage of an ended run. Tokens that a gateway counted replace the engine's. Missing numbers come from the last report of the
 * engine.
 */
export function buildUsageSet(table: "execution" | "bee_run", usage: Usage): { sql: string; args: Value[] } {
  const id = `${table}.id`;
  const reported = (name: string) => `(select ${name} from reservation where execution_id = ${id})`;
  const counted = (name: string) => `(select ${name} ${selectCounted(id)})`;
  const sumTokens = (name: string) => `${name} = coalesce(${counted(`sum(${name})`)}, ?, ${reported(name)})`;
  const { input_tokens, output_tokens, cost_usd } = usage;
  return {
    sql: `${sumTokens("input_tokens")}, ${sumTokens("output_tokens")},
      cost_usd = coalesce(?, ${reported("cost_usd")}, ${counted("sum(cost_usd)")})`,
    args: [input_tokens, output_tokens, cost_usd],
  };
}

/** Stores the user who asked to cancel an execution, guarded by its being open. */
export function markCancelled(id: string, by: string): Statement[] {
  const sql = `update execution set cancelled_by = ? where id = ? and status ${EXECUTION_IS_OPEN}`;
  return guard(sql, [by, id]);
}

/** Marks an open execution as replaced by a later occurrence of its schedule. */
export function markReplaced(id: string): Statement {
  return {
    sql: `update execution
      set cancelled_by = 'system'
      where id = ? and status ${EXECUTION_IS_OPEN} and cancelled_by = ''`,
    args: [id],
  };
}

export async function findExecution(db: Database, id: string): Promise<Execution | null> {
  return parseNullableJson(await findExecutionJson(db, id));
}

/** Finds the execution as JSON text. Null also outside the conversation that the caller is bound to. */
export function findExecutionJson(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<Json<Execution> | null> {
  return readBoundJson(db, EXECUTIONS, id, boundTo);
}

/** An open run that the rescuer finds after a start. */
export interface OpenExecution extends RunIdentity {
  session_id: string;
  cancelled_by: string;
  worker_name: string;
  engine: string;
  fallback_from: string;
  since: number;
  task_status: string;
  /** 1 for a run of a runner. */
  remote: number;
}

/** Lists pending and running executions, without those that a runner has leased. */
export function listOpenExecutions(db: Database, now: number): Promise<OpenExecution[]> {
  return db.read<OpenExecution>(
    `select execution.id as execution_id, execution.task_id, execution.worker_id, execution.session_key,
      execution.message_id, execution.session_id, execution.attempt, execution.run_id, execution.cancelled_by,
      execution.worker_name, execution.engine, execution.fallback_from, execution.created_at as since,
      task.status as task_status, lease.execution_id is not null as remote
    from execution
    join task on task.id = execution.task_id
    left join remote_run as lease on lease.execution_id = execution.id
    where execution.status ${EXECUTION_IS_OPEN} and coalesce(lease.lease_until, 0) <= ?
    order by execution.id`,
    [now],
  );
}

// A task that waits for its gate already has the id of its next execution. The limit exceeds the number of slots.
const GATE_ROWS = 10_000;
const GATED_EXECUTIONS = `select gate.execution_id as id
    from (
      select task_id, execution_id
      from occurrence indexed by occurrence_gating
      where status = 'gating'
      limit ${GATE_ROWS}) as gate
    join task on task.id = gate.task_id
    where`;

/** Lists the open executions of a worker, and those that wait for a gate. */
export function listOpenExecutionIds(db: Database, workerId: string): Promise<string[]> {
  return db.readColumn<string>(
    `select id from execution where worker_id = ? and status ${EXECUTION_IS_OPEN}
    union all ${GATED_EXECUTIONS} task.worker_id = ?`,
    [workerId, workerId],
  );
}

/** Lists the open executions of a conversation, of one worker or all, and those that wait for a gate. */
export function listOpenConversationExecutionIds(
  db: Database,
  sessionKey: string,
  workerId = "",
): Promise<string[]> {
  return db.readColumn<string>(
    `select id
    from execution
    where status ${EXECUTION_IS_OPEN} and session_key = ? and (? = '' or worker_id = ?)
    union all ${GATED_EXECUTIONS} task.session_key = ? and (? = '' or task.worker_id = ?)`,
    [sessionKey, workerId, workerId, sessionKey, workerId, workerId],
  );
}

export async function countTaskExecutions(db: Database, taskId: string): Promise<number> {
  const sql = "select count(*) as runs from execution where task_id = ?";
  return await db.readValue<number>(sql, [taskId]) ?? 0;
}

/** Counts the runs of a task that hit a rate limit. */
export async function countLimitedRuns(db: Database, taskId: string): Promise<number> {
  const sql = "select count(*) as runs from execution where task_id = ? and failure = 'rate_limited'";
  return await db.readValue<number>(sql, [taskId]) ?? 0;
}

/** Whether each of the last `count` runs of a task ended with this error. */
export async function hasEndedWith(
  db: Database,
  taskId: string,
  error: string,
  count: number,
): Promise<boolean> {
  return await db.readValue<number>(
    `select count(*) as runs
    from (select error from execution where task_id = ? and completed_at is not null order by id desc limit ?)
    where error = ?`,
    [taskId, count, error],
  ) === count;
}

/** The rights of a run token: its open run and the scopes of its worker. */
interface RunGrant extends RunBinding {
  scopes: string;
}

/**
 * Finds the grant of a run that is still running with this attempt, else null (reliability SCP-5, SCP-6). Also null when its
 * runner was removed, or when its worker has *:* on a runner that does not allow it (contract 18).
 */
export function findRunGrant(db: Database, executionId: string, attempt: number): Promise<RunGrant | null> {
  return db.first<RunGrant>(
    `select execution.id as execution_id, execution.attempt, execution.task_id, execution.worker_id,
      execution.session_key, execution.message_id, worker.scopes, task.depth
    from execution
    join worker on worker.id = execution.worker_id
    join task on task.id = execution.task_id
    where execution.id = ? and execution.attempt = ? and execution.status ${EXECUTION_IS_OPEN} and not exists (
      select 1
      from remote_run
      left join runner on runner.id = remote_run.runner_id
      where remote_run.execution_id = execution.id and (runner.id is null or runner.allow_admin = 0 and exists (
        select 1 from json_each(worker.scopes) where value = '*:*')))`,
    [executionId, attempt],
  );
}
