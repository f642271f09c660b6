import { type Execution, type Usage, USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import type { Database, Statement } from "../db/database.ts";
import { list } from "../db/list.ts";
import { EXECUTION_IS_OPEN, TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { contextSchema, type SessionContext } from "../../domain/chat/session.ts";
import { buildJsonSql } from "../db/json_projection.ts";

const CONTEXT_JSON = buildJsonSql("context", contextSchema, {
  worker_name: "(select name from worker where worker.id = context.worker_id)",
  active_tasks: `(
    select count(*)
    from task
    where task.session_key = context.session_key and task.worker_id = context.worker_id
      and status ${TASK_IS_ACTIVE})`,
});

/** Lists the contexts of a session key, one per worker, newest worker first. Leaves out those of other engines than the worker's. */
export function listContexts(db: Database, sessionKey: string, page: Page): Promise<Listing<SessionContext>> {
  // list() orders by id. The id of a context within its session is its worker's.
  const context = "(select *, worker_id as id from session_context) as context";
  return list(db, {
    table: "context",
    from: context,
    json: CONTEXT_JSON,
    where: { conditions: ["context.session_key = ?", "context.fallback = 0"], args: [sessionKey] },
  }, page);
}

/** Deletes contexts of other engines, because no engine can resume another engine's session (contract 3, Session context). */
export function deleteForeignContexts(workerId: string, engine: string): Statement {
  return {
    sql: "delete from session_context where worker_id = ? and (engine <> ? or fallback = 1)",
    args: [workerId, engine],
  };
}

/** Deletes the contexts of a session key, of one worker or of all. Returns their workers. */
export function deleteContexts(sessionKey: string, workerId = ""): Statement {
  return {
    sql: `delete from session_context
      where session_key = ? and (? = '' or worker_id = ?)
      returning worker_id`,
    args: [sessionKey, workerId, workerId],
  };
}

/** Prevents open runs from storing a cleared context when they end. */
export function discardRunContexts(sessionKey: string, workerId = ""): Statement {
  return {
    sql: `update execution
      set keeps_context = 0
      where status ${EXECUTION_IS_OPEN} and session_key = ? and (? = '' or worker_id = ?)`,
    args: [sessionKey, workerId, workerId],
  };
}

/** Prevents all open runs of a worker from storing their contexts. */
export function discardWorkerRunContexts(workerId: string): Statement {
  return {
    sql: `update execution set keeps_context = 0 where status ${EXECUTION_IS_OPEN} and worker_id = ?`,
    args: [workerId],
  };
}

interface StoredContext {
  session_id: string;
  work_dir: string;
  /** Totals of the session so far, for engines that report totals. */
  usage: Usage;
}

type ContextKey = Pick<Execution, "session_key" | "worker_id" | "engine" | "fallback_from">;

export async function findContext(
  db: Database,
  { session_key, worker_id, engine, fallback_from }: ContextKey,
): Promise<StoredContext | null> {
  const row = await db.first<{ session_id: string; work_dir: string; usage: string }>(
    `select session_id, work_dir, usage
    from session_context
    where session_key = ? and worker_id = ? and fallback = ? and engine = ?`,
    [session_key, worker_id, Number(fallback_from !== ""), engine],
  );
  return row === null ? null : { ...row, usage: { ...USAGE_UNKNOWN, ...JSON.parse(row.usage) } };
}

/** The point from which a session missed the runs of another engine. */
interface MissedRuns {
  /** The message of the session's last completed run, or "". */
  lastMessageId: string;
  /** When the contexts of the conversation were cleared, else 0. */
  clearedAt: number;
}

/** Finds what the session of a run missed. Returns null when no other engine ran the worker since its last completed run, nor runs it now. */
export async function findMissedRuns(
  db: Database,
  { session_key, worker_id, session_id, fallback_from }: Omit<ContextKey, "engine"> & { session_id: string },
): Promise<MissedRuns | null> {
  const last = session_id === "" ? null : await db.first<{ id: string; message_id: string }>(
    `select id, message_id
    from execution
    where session_id = ? and session_key = ? and status = 'completed'
    order by id desc
    limit 1`,
    [session_id, session_key],
  );
  const other = fallback_from !== "" ? {} : await db.first(
    `select 1 as one
    from execution
    where session_key = ? and worker_id = ? and fallback_from <> '' and id > ?
    limit 1`,
    [session_key, worker_id, last?.id ?? ""],
  );
  if (other === null) return null;
  const clearedAt = await db.readValue<number>(
    `select at
    from journal
    where session_key = ? and session_key <> '' and +kind in ('context.cleared', 'session.cleared')
      and +worker_id in ('', ?)
    order by seq desc
    limit 1`,
    [session_key, worker_id],
  );
  return { lastMessageId: last?.message_id ?? "", clearedAt: clearedAt ?? 0 };
}

/**
 * For a task that delivers an answer, finds the engine session of the run that asked. Returns null for other tasks and for shared sessions
 * (contract 12).
 */
export async function findAskerContext(
  db: Database,
  taskId: string,
  engine: string,
): Promise<StoredContext | null> {
  const row = await db.first<Omit<StoredContext, "usage"> & Usage>(
    `select execution.session_id, question.work_dir, sum(past.input_tokens) as input_tokens,
      sum(past.output_tokens) as output_tokens, sum(past.cost_usd) as cost_usd
    from question
    join execution on execution.id = question.execution_id
    join execution as past on past.session_id = execution.session_id
      and +past.worker_id = execution.worker_id and past.engine = execution.engine
    where question.answer_task_id = ? and question.own_session = 1 and execution.engine = ?
      and execution.session_id not in ('', execution.session_key)
    group by execution.id`,
    [taskId, engine],
  );
  if (row === null) return null;
  const { session_id, work_dir, ...usage } = row;
  return { session_id, work_dir, usage };
}

/**
 * Stores a run's context, unless it was cleared, or the worker has gone, has another engine or no home (contract 3, Session context).
 */
export function storeContext(executionId: string, context: StoredContext, now: number): Statement {
  return {
    sql:
      `insert into session_context (session_key, worker_id, fallback, engine, session_id, work_dir, usage, updated_at)
      select execution.session_key, execution.worker_id, execution.fallback_from <> '', execution.engine, ?, ?, ?, ?
      from execution
      join worker on worker.id = execution.worker_id and worker.home <> 'none'
        and worker.engine in ('', iif(execution.fallback_from = '', execution.engine, execution.fallback_from))
      where execution.id = ? and execution.keeps_context = 1 and not exists (
        select 1 from question where answer_task_id = execution.task_id and own_session = 1)
      on conflict (session_key, worker_id, fallback) do update set
        engine = excluded.engine, session_id = excluded.session_id, work_dir = excluded.work_dir,
        usage = excluded.usage, updated_at = excluded.updated_at`,
    args: [context.session_id, context.work_dir, JSON.stringify(context.usage), now, executionId],
  };
}
