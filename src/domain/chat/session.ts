import { z } from "zod";
import { id, sessionKey, time } from "../call/field.ts";
import { pageQuery } from "../call/page.ts";

/** What an engine remembers for one session key and worker (interface 2, Session context; contract 3, Session context). */
export const contextSchema = z.strictObject({
  session_key: z.string(),
  worker_id: id,
  worker_name: z.string(),
  engine: z.string(),
  session_id: z.string(),
  updated_at: time,
  active_tasks: z.int(),
}).meta({ id: "SessionContext" });

const SESSION_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/;

/** Whether this can be the id of an engine's session: it becomes an argument of a program, and is stored. */
export function isSessionId(id: string): boolean {
  return SESSION_ID.test(id);
}

export type SessionContext = z.output<typeof contextSchema>;

/** Query of GET /api/contexts: here the key is required. */
export const contextListQuery = { session_key: sessionKey, ...pageQuery() };

/** Query that names one conversation. */
export const contextQuery = { session_key: sessionKey };

/** What a clear answers (contract 1.3). */
export const clearedSchema = z.strictObject({
  cancelled_tasks: z.int(),
  cleared_contexts: z.int(),
}).meta({ id: "Cleared" });

export type Cleared = z.output<typeof clearedSchema>;
