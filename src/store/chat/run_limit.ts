import type { Hold } from "../../domain/work/block.ts";
import type { Statement } from "../db/database.ts";
import { recordWhen } from "../events/journal.ts";
import { insertNotice } from "./notice.ts";

const HOUR_MS = 3_600_000;

// The journal itself knows whether it was said.
const UNSAID = `not exists (
  select 1 from journal where kind = 'run_limit.met' and at > ? and data ->> '$.held' = ?)`;

/** What met the bound of runs in an hour. */
interface Often {
  worker_id: string;
  session_key: string;
  message_id: string;
  task_id: string;
}

/** Says that a worker or a conversation runs too often, in the journal and in the conversation, once in an hour (contract 14). */
export function tellRunLimit(often: Often, hold: Hold, now: number): Statement[] {
  const { session_key, message_id, task_id } = often;
  const when = { sql: UNSAID, args: [now - HOUR_MS, hold.held] };
  const content = `A task waits: ${hold.reason}. If that is a loop, cancel what makes it go round.`;
  const data = { held: hold.held, until: hold.until };
  return [
    ...insertNotice({ kind: "run_limit.met", session_key, message_id, about: task_id, content }, now, when),
    recordWhen(now, { kind: "run_limit.met", ...often, data }, when),
  ];
}
