import type { Listing, Page } from "../../domain/call/page.ts";
import { ACTIVE_TASK_STATUSES } from "../../domain/call/vocabulary.ts";
import type { QueueCancel, QueueFilter, Task } from "../../domain/work/task.ts";
import type { Database } from "../db/database.ts";
import { buildWhere, limitToConversation, matchAny, matchColumns, matchText } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { TASK_TEXTS, TASKS } from "./task.ts";

// The index has only active tasks, so ended tasks cost nothing.
const ACTIVE = "task indexed by task_active";

const FILTERS = {
  ...matchColumns("task", ["session_key", "worker_id", "type"]),
  status: matchAny("+task.status"),
  text: matchText(TASK_TEXTS),
};

const STOPPED: readonly string[] = ["failed", "cancelled"];

/** Lists the tasks of all workers and conversations, newest first: the active ones, or those with the statuses of the filter. */
export function listQueue(
  db: Database,
  filter: QueueFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = buildWhere(filter, FILTERS);
  limitToConversation(where, "task.session_key", boundTo);
  const { status = ACTIVE_TASK_STATUSES } = filter;
  if (status.every((one) => (ACTIVE_TASK_STATUSES as readonly string[]).includes(one))) {
    where.conditions.push(`task.status ${TASK_IS_ACTIVE}`);
    return list(db, { ...TASKS, from: ACTIVE, where }, page);
  }
  // SQLite uses a partial index only for a query that repeats its condition.
  if (status.every((one) => STOPPED.includes(one))) {
    where.conditions.push("task.status in ('failed', 'cancelled')");
  }
  return list(db, { ...TASKS, where }, page);
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
