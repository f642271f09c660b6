import type { Listing, Page } from "../../domain/call/page.ts";
import type { QueueCancel, QueueFilter, Task } from "../../domain/work/task.ts";
import type { Database } from "../db/database.ts";
import { buildWhere, limitToConversation, matchAny, matchColumns } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { TASKS } from "./task.ts";

// The index has only active tasks, so ended tasks cost nothing.
const ACTIVE = "task indexed by task_active";

const FILTERS = {
  ...matchColumns("task", ["session_key", "worker_id", "type"]),
  status: matchAny("+task.status"),
};

/** Lists the active tasks of all workers and conversations, newest first. */
export function listQueue(
  db: Database,
  filter: QueueFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = buildWhere(filter, FILTERS);
  where.conditions.push(`task.status ${TASK_IS_ACTIVE}`);
  limitToConversation(where, "task.session_key", boundTo);
  return list(db, { ...TASKS, from: ACTIVE, where }, page);
}

type TaskKeys = Pick<Task, "id" | "session_key" | "worker_id" | "message_id">;

/** Lists pending and scheduled tasks that match a filter. */
export function listCancellableTasks(
  db: Database,
  filter: QueueCancel["filter"],
  max: number,
): Promise<TaskKeys[]> {
  const { conditions, args } = buildWhere(filter, FILTERS);
  const all = [`status ${TASK_IS_ACTIVE}`, "+status <> 'running'", ...conditions];
  return db.read(
    `select id, session_key, worker_id, message_id
    from ${ACTIVE}
    where ${all.join(" and ")}
    limit ?`,
    [...args, max],
  );
}
