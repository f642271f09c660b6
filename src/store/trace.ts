import { BEE_RUN_JSON } from "./bee_run.ts";
import type { Database } from "./database.ts";
import { EXECUTION_JSON } from "./execution.ts";
import { INBOUND_JSON } from "./inbound.ts";
import { OUTBOUND_JSON } from "./outbound.ts";
import { TASK_JSON } from "./task.ts";

/** Rows of one kind that a trace shows at most: a schedule goes on for years. */
const TRACE_ROWS_MAX = 100;

/** What became of a message, each part as JSON texts as the API shows them, oldest first (contract 5). */
interface TraceRows {
  parts: string[];
  routing: string[];
  tasks: string[];
  executions: string[];
  replies: string[];
}

/** Everything that is stored about a message and what it caused; of many rows the latest. */
export async function findTrace(db: Database, messageId: string): Promise<TraceRows> {
  const [parts, routing, tasks, executions, replies] = await Promise.all([
    rows(db, "inbound_message", INBOUND_JSON, "(id = ? or merged_into = ?)", [messageId, messageId]),
    rows(db, "bee_run", BEE_RUN_JSON, "message_id = ?", [messageId]),
    rows(db, "task", TASK_JSON, "message_id = ?", [messageId]),
    rows(db, "execution", EXECUTION_JSON, "message_id = ?", [messageId]),
    rows(db, "outbound_message", OUTBOUND_JSON, "message_id = ?", [messageId]),
  ]);
  return { parts, routing, tasks, executions, replies };
}

async function rows(
  db: Database,
  table: string,
  json: string,
  where: string,
  args: string[],
): Promise<string[]> {
  const found = await db.read<{ json: string }>(
    `select ${json} as json from ${table} where ${where} order by id desc limit ?`,
    [...args, TRACE_ROWS_MAX],
  );
  return found.reverse().map((row) => row.json);
}
