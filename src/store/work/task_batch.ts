import { type Database, guardedRows, type Statement } from "../db/database.ts";
import { chooseWakeup, type NewTask, TASK_COLUMNS, valuesOf } from "./task.ts";

const WORKER_AT = TASK_COLUMNS.indexOf("worker_id");

/** Stores new tasks in one statement and in their order, guarded by the existence of all their workers. */
export function insertTasks(tasks: readonly NewTask[]): Statement[] {
  const wakeups = tasks.flatMap((task) => chooseWakeup(task) ?? []);
  return guardedRows(tasks.length, {
    sql: `insert into task (${TASK_COLUMNS.join(", ")})
      select ${TASK_COLUMNS.map((_, at) => `one.value ->> ${at}`).join(", ")}
      from json_each(?) as one
      cross join worker on worker.id = one.value ->> ${WORKER_AT}
      order by one.key`,
    args: [JSON.stringify(tasks.map(valuesOf))],
    wakeup: [...new Set(wakeups)],
  });
}

/** The message and conversation of a new task. */
export interface Origin {
  message_id: string;
  session_key: string;
}

/** Finds stored messages by their id or their id on a platform, with their conversations (see findInbound()). */
export async function listOrigins(
  db: Database,
  names: readonly string[],
  boundTo: string | null,
): Promise<Map<string, Origin>> {
  const rows = await db.read<{ name: string; id: string; session_key: string }>(
    `select named.value as name, inbound_message.id, session_key
    from json_each(?) as named
    cross join inbound_message on inbound_message.id = coalesce(
      (select id from inbound_message where id = named.value and (? is null or session_key = ?)),
      (select id from inbound_message where platform_message_id = named.value order by id desc limit 1))
    where ? is null or session_key = ?`,
    [JSON.stringify(names), boundTo, boundTo, boundTo, boundTo],
  );
  return new Map(rows.map(({ name, id, session_key }) => [name, { message_id: id, session_key }]));
}

/** Maps the ids of existing workers to their engines. */
export async function listEnginesOf(db: Database, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.read<{ id: string; engine: string }>(
    "select id, engine from worker where id in (select value from json_each(?))",
    [JSON.stringify(ids)],
  );
  return new Map(rows.map(({ id, engine }) => [id, engine]));
}
