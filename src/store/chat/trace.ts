import { BEE_RUN_JSON, BEE_RUN_TEXTS } from "./bee_run.ts";
import type { Database } from "../db/database.ts";
import { EXECUTION_JSON, EXECUTION_TEXTS } from "../work/execution.ts";
import { INBOUND_JSON, INBOUND_TEXTS } from "./inbound.ts";
import { OUTBOUND_JSON, OUTBOUND_TEXTS } from "./outbound.ts";
import { TASK_JSON, TASK_TEXTS } from "../work/task.ts";
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
  const inbound = { table: "inbound_message", json: INBOUND_JSON, texts: INBOUND_TEXTS };
  const bee_run = { table: "bee_run", json: BEE_RUN_JSON, texts: BEE_RUN_TEXTS };
  const task = { table: "task", json: TASK_JSON, texts: TASK_TEXTS };
  const execution = { table: "execution", json: EXECUTION_JSON, texts: EXECUTION_TEXTS };
  const outbound = { table: "outbound_message", json: OUTBOUND_JSON, texts: OUTBOUND_TEXTS };
  const [parts, routing, tasks, executions, replies] = await Promise.all([
    readRows(db, inbound, "(id = ?1 or merged_into = ?1)", messageId),
    readRows(db, bee_run, "message_id = ?1", messageId),
    readRows(db, task, "message_id = ?1", messageId),
    readRows(db, execution, "message_id = ?1", messageId),
    readRows(db, outbound, "message_id = ?1", messageId),
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
