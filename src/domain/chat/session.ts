import { z } from "zod";
import { id, sessionKey, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";

/** The engine session of one session key and worker. */
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

/** Returns whether a text is a valid id of an engine session. The id becomes a program argument. */
export function isSessionId(id: string): boolean {
  return SESSION_ID.test(id);
}

export type SessionContext = z.output<typeof contextSchema>;

/** Unlike other lists, this one requires a session key. */
export const contextListQuery = { session_key: sessionKey, ...buildPageQuery() };

export const contextQuery = { session_key: sessionKey };

export const clearedSchema = z.strictObject({
  cancelled_tasks: z.int(),
  cleared_contexts: z.int(),
}).meta({ id: "Cleared" });
export type ClearResult = z.output<typeof clearedSchema>;
