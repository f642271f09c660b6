import type { Statement } from "./database.ts";

/** Drops a worker's contexts that another engine than `engine` made: a session of one means nothing to the other (contract 3). */
export function deleteForeignContexts(workerId: string, engine: string): Statement {
  return { sql: "delete from session_context where worker_id = ? and engine <> ?", args: [workerId, engine] };
}

/** Drops every context of a session key; returns the workers. */
export function deleteContexts(sessionKey: string): Statement {
  return { sql: "delete from session_context where session_key = ? returning worker_id", args: [sessionKey] };
}
