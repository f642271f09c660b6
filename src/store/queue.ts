import type { Listing, Page } from "../domain/page.ts";
import type { QueueCancel, QueueFilter, Task } from "../domain/task.ts";
import type { Database, Value } from "./database.ts";
import { list, oneOf } from "./list.ts";
import { TASK_IS_ACTIVE } from "./status.ts";
import { TASK_JSON } from "./task.ts";

// The index of active tasks: however many have ended, none of them is read.
const ACTIVE = "task indexed by task_active";

/** Active tasks of all workers and conversations, newest first. */
export function listQueue(
  db: Database,
  filter: Omit<QueueFilter, keyof Page>,
  boundTo: string | null,
  page: Page,
): Promise<Listing> {
  const where = [`task.status ${TASK_IS_ACTIVE}`];
  const args: Value[] = [];
  if (filter.session_key !== undefined) oneOf(where, args, "task.session_key", [filter.session_key]);
  if (boundTo !== null) oneOf(where, args, "task.session_key", [boundTo]);
  if (filter.worker_id !== undefined) oneOf(where, args, "task.worker_id", filter.worker_id);
  if (filter.status !== undefined) oneOf(where, args, "+task.status", filter.status);
  if (filter.type !== undefined) oneOf(where, args, "task.type", filter.type);
  return list(db, { table: "task", from: ACTIVE, json: TASK_JSON, where, args }, page);
}

/** What an event says of a task. */
type TaskKeys = Pick<Task, "id" | "session_key" | "worker_id" | "message_id">;

/** Tasks that wait or are scheduled and match a filter, `max` of them at most. */
export function findQueued(db: Database, filter: QueueCancel["filter"], max: number): Promise<TaskKeys[]> {
  const where = [`status ${TASK_IS_ACTIVE}`, "+status <> 'running'"];
  const args: Value[] = [];
  for (const name of ["session_key", "worker_id", "type"] as const) {
    const value = filter[name];
    if (value !== undefined) oneOf(where, args, name, [value]);
  }
  if (filter.status !== undefined) oneOf(where, args, "+status", [filter.status]);
  return db.read(
    `select id, session_key, worker_id, message_id
    from ${ACTIVE}
    where ${where.join(" and ")}
    limit ?`,
    [...args, max],
  );
}
