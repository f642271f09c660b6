import { BEE_RUN_JSON } from "./bee_run.ts";
import type { Database } from "./database.ts";
import { EXECUTION_JSON } from "./execution.ts";
import { INBOUND_JSON } from "./inbound.ts";
import { OUTBOUND_JSON } from "./outbound.ts";
import { TASK_JSON } from "./task.ts";
import { allShown, type JsonSql } from "./shown.ts";
import type { Json } from "../domain/json.ts";
import type { MessageTrace } from "../domain/trace.ts";

/** Rows of one kind that a trace shows at most: a schedule goes on for years. */
const TRACE_ROWS_MAX = 100;

/** What became of a message, each part as JSON texts as the API shows them, oldest first (contract 5). */
type TraceRows = {
  [K in Exclude<keyof MessageTrace, "message">]: MessageTrace[K] extends (infer T)[] ? Json<T>[] : never;
};

/** Everything that is stored about a message and what it caused; of many rows the latest. */
export async function findTrace(db: Database, messageId: string): Promise<TraceRows> {
  const [parts, routing, tasks, executions, replies] = await Promise.all([
    rows(db, "inbound_message", INBOUND_JSON, {
      where: "(id = ? or merged_into = ?)",
      args: [messageId, messageId],
    }),
    rows(db, "bee_run", BEE_RUN_JSON, { where: "message_id = ?", args: [messageId] }),
    rows(db, "task", TASK_JSON, { where: "message_id = ?", args: [messageId] }),
    rows(db, "execution", EXECUTION_JSON, { where: "message_id = ?", args: [messageId] }),
    rows(db, "outbound_message", OUTBOUND_JSON, { where: "message_id = ?", args: [messageId] }),
  ]);
  return { parts, routing, tasks, executions, replies };
}

async function rows<T>(
  db: Database,
  table: string,
  json: JsonSql<T>,
  { where, args }: { where: string; args: string[] },
): Promise<Json<T>[]> {
  const rest = `from ${table} where ${where} order by id desc limit ?`;
  return (await allShown(db, json, rest, [...args, TRACE_ROWS_MAX])).reverse();
}
