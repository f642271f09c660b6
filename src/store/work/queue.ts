import type { Listing, Page } from "../../domain/call/page.ts";
import type { QueueCancel, QueueFilter, Task } from "../../domain/work/task.ts";
import type { Database } from "../db/database.ts";
import { type Filters, inConversation, oneOf, whereOf } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { TASK_JSON, TASK_TEXTS } from "./task.ts";

// The index has only active tasks, so ended ones cost nothing.
const ACTIVE = "task indexed by task_active";

const FILTERS: Filters<QueueFilter> = {
  session_key: oneOf("task.session_key"),
  worker_id: oneOf("task.worker_id"),
  status: oneOf("+task.status"),
  type: oneOf("task.type"),
};

const CANCEL_FILTERS: Filters<QueueCancel["filter"]> = {
  session_key: oneOf("session_key"),
  worker_id: oneOf("worker_id"),
  status: oneOf("+status"),
  type: oneOf("type"),
};

/** Lists the active tasks of all workers and conversations, newest first. */
export function listQueue(
  db: Database,
  filter: QueueFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = whereOf(filter, FILTERS);
  where.conditions.push(`task.status ${TASK_IS_ACTIVE}`);
  inConversation(where, "task.session_key", boundTo);
  return list(db, { table: "task", from: ACTIVE, json: TASK_JSON, texts: TASK_TEXTS, where }, page);
}

type TaskKeys = Pick<Task, "id" | "session_key" | "worker_id" | "message_id">;

/** Lists pending and scheduled tasks that match a filter. */
export function findQueued(db: Database, filter: QueueCancel["filter"], max: number): Promise<TaskKeys[]> {
  const { conditions, args } = whereOf(filter, CANCEL_FILTERS);
  const all = [`status ${TASK_IS_ACTIVE}`, "+status <> 'running'", ...conditions];
  return db.read(
    `select id, session_key, worker_id, message_id
    from ${ACTIVE}
    where ${all.join(" and ")}
    limit ?`,
    [...args, max],
  );
}
