import { BEE_RUNS } from "./bee_run.ts";
import type { Database } from "../db/database.ts";
import { EXECUTIONS } from "../work/execution.ts";
import { INBOUND } from "./inbound.ts";
import { OUTBOUND } from "./outbound.ts";
import { TASKS } from "../work/task.ts";
import { type Objects, READ_MAX_BYTES, readBounded } from "../db/size_limited_read.ts";
import type { Json } from "../../domain/call/json.ts";
import type { MessageTrace } from "../../domain/chat/trace.ts";

/** Most rows of one kind in a trace, because a schedule runs for years. */
const TRACE_ROWS_MAX = 100;

/** The parts of a trace as JSON texts of the API, oldest first (contract 5). */
type TraceRows = {
  [K in Exclude<keyof MessageTrace, "message">]: MessageTrace[K] extends (infer T)[] ? Json<T>[] : never;
};

/** Reads everything that is stored about a message and its effects, the latest rows of each kind. */
export async function findTrace(db: Database, messageId: string): Promise<TraceRows> {
  const [parts, routing, tasks, executions, replies] = await Promise.all([
    readRows(db, INBOUND, "(id = ?1 or merged_into = ?1)", messageId),
    readRows(db, BEE_RUNS, "message_id = ?1", messageId),
    readRows(db, TASKS, "message_id = ?1", messageId),
    readRows(db, EXECUTIONS, "message_id = ?1", messageId),
    readRows(db, OUTBOUND, "message_id = ?1", messageId),
  ]);
  return { parts, routing, tasks, executions, replies };
}

// The five kinds share the limit of one read equally (contract 8.18).
async function readRows<T>(
  db: Database,
  objects: Objects<T>,
  where: string,
  messageId: string,
): Promise<Json<T>[]> {
  const found = await readBounded(db, objects, {
    sql: `from ${objects.table} where ${where} order by id desc limit ?2`,
    args: [messageId, TRACE_ROWS_MAX],
  }, { over: "cut", maxBytes: READ_MAX_BYTES / 5 });
  return found.rows.reverse().map((row) => row.json);
}
