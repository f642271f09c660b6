import type { Block } from "../../domain/work/block.ts";
import type { Statement } from "../db/database.ts";
import { recordWhen } from "../events/journal.ts";
import { insertNotice } from "./notice.ts";

const HOUR_MS = 3_600_000;

// True unless the journal has a report of this limit within the last hour.
const NOT_REPORTED = `not exists (
  select 1 from journal where kind = 'run_limit.met' and at > ? and data ->> '$.held' = ?)`;

interface LimitedRun {
  worker_id: string;
  session_key: string;
  message_id: string;
  task_id: string;
}

/** Reports a worker or a conversation that runs too often, in the journal and the conversation, once per hour (contract 14). */
export function reportRunLimit(run: LimitedRun, block: Block, now: number): Statement[] {
  const { session_key, message_id, task_id } = run;
  const when = { sql: NOT_REPORTED, args: [now - HOUR_MS, block.held] };
  const content = `A task waits: ${block.reason}. If the tasks form a loop, cancel the task that repeats it.`;
  const data = { held: block.held, until: block.until };
  return [
    ...insertNotice({ kind: "run_limit.met", session_key, message_id, about: task_id, content }, now, when),
    recordWhen(now, { kind: "run_limit.met", ...run, data }, when),
  ];
}
