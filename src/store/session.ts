import type { Listing, Page } from "../domain/page.ts";
import type { Database, Statement } from "./database.ts";
import { list } from "./list.ts";

const CONTEXT_JSON = `json_object(
  'session_key', context.session_key,
  'worker_id', context.worker_id,
  'worker_name', (select name from worker where worker.id = context.worker_id),
  'engine', context.engine,
  'session_id', context.session_id,
  'updated_at', context.updated_at,
  'active_tasks', (
    select count(*)
    from task
    where task.session_key = context.session_key and task.worker_id = context.worker_id
      and status in ('pending', 'running', 'scheduled')))`;

/** Contexts of a session key; there is one per worker, so the newest worker comes first. */
export function listContexts(db: Database, sessionKey: string, page: Page): Promise<Listing> {
  // Lists go by id; a context's id within its session is its worker's.
  const context = "(select *, worker_id as id from session_context) as context";
  return list(db, {
    table: "context",
    from: context,
    json: CONTEXT_JSON,
    where: ["context.session_key = ?"],
    args: [sessionKey],
  }, page);
}

/** Drops a worker's contexts that another engine than `engine` made: a session of one means nothing to the other (contract 3). */
export function deleteForeignContexts(workerId: string, engine: string): Statement {
  return { sql: "delete from session_context where worker_id = ? and engine <> ?", args: [workerId, engine] };
}

/** Drops the contexts of a session key, of one worker or of all; returns their workers. */
export function deleteContexts(sessionKey: string, workerId = ""): Statement {
  return {
    sql: `delete from session_context
      where session_key = ? and (? = '' or worker_id = ?)
      returning worker_id`,
    args: [sessionKey, workerId, workerId],
  };
}

/** Keeps runs that are going on from bringing a cleared context back at their end. */
export function forgetContexts(sessionKey: string, workerId = ""): Statement {
  return {
    sql: `update execution
      set keeps_context = 0
      where status in ('pending', 'running') and session_key = ? and (? = '' or worker_id = ?)`,
    args: [sessionKey, workerId, workerId],
  };
}
