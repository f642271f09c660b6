import { BEE_RUN_JSON, BEE_RUN_TEXTS } from "./bee_run.ts";
import type { Database } from "../db/database.ts";
import { EXECUTION_JSON, EXECUTION_TEXTS } from "../work/execution.ts";
import { INBOUND_JSON, INBOUND_TEXTS } from "./inbound.ts";
import { OUTBOUND_JSON, OUTBOUND_TEXTS } from "./outbound.ts";
import { TASK_JSON, TASK_TEXTS } from "../work/task.ts";
import { type Objects, READ_MAX_BYTES, readBounded } from "../db/size_limited_read.ts";
import type { Json } from "../../domain/call/json.ts";
import type { MessageTrace } from "../../domain/chat/trace.ts";

/** Rows of one kind that a trace shows at most: a schedule goes on for years. */
const TRACE_ROWS_MAX = 100;

/** What became of a message, each part as JSON texts as the API shows them, oldest first (contract 5). */
type TraceRows = {
  [K in Exclude<keyof MessageTrace, "message">]: MessageTrace[K] extends (infer T)[] ? Json<T>[] : never;
};

/** Everything that is stored about a message and what it caused; of many rows the latest. */
export async function findTrace(db: Database, messageId: string): Promise<TraceRows> {
  const [parts, routing, tasks, executions, replies] = await Promise.all([
    rows(db, { table: "inbound_message", json: INBOUND_JSON, texts: INBOUND_TEXTS }, {
      where: "(id = ? or merged_into = ?)",
      args: [messageId, messageId],
    }),
    rows(db, { table: "bee_run", json: BEE_RUN_JSON, texts: BEE_RUN_TEXTS }, {
      where: "message_id = ?",
      args: [messageId],
    }),
    rows(db, { table: "task", json: TASK_JSON, texts: TASK_TEXTS }, {
      where: "message_id = ?",
      args: [messageId],
    }),
    rows(db, { table: "execution", json: EXECUTION_JSON, texts: EXECUTION_TEXTS }, {
      where: "message_id = ?",
      args: [messageId],
    }),
    rows(db, { table: "outbound_message", json: OUTBOUND_JSON, texts: OUTBOUND_TEXTS }, {
      where: "message_id = ?",
      args: [messageId],
    }),
  ]);
  return { parts, routing, tasks, executions, replies };
}

// Each of the five kinds has an equal share of what one read may be (contract 8.18).
async function rows<T>(
  db: Database,
  objects: Objects<T>,
  { where, args }: { where: string; args: string[] },
): Promise<Json<T>[]> {
  const found = await readBounded(db, objects, {
    sql: `from ${objects.table} where ${where} order by id desc limit ?`,
    args: [...args, TRACE_ROWS_MAX],
  }, { over: "cut", maxBytes: READ_MAX_BYTES / 5 });
  return found.rows.reverse().map((row) => row.json);
}
