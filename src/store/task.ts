import { BELL } from "../base/bells.ts";
import type { Listing, Page } from "../domain/page.ts";
import type { Task, TaskFilter } from "../domain/task.ts";
import { type Database, guarded, type Statement, type Value } from "./database.ts";
import { list, oneOf, parsed } from "./list.ts";
import { TASK_IS_ACTIVE } from "./status.ts";

/** JSON of a task as the API shows it. */
export const TASK_JSON = `json_object(
  'id', task.id,
  'message_id', task.message_id,
  'worker_id', task.worker_id,
  'session_key', task.session_key,
  'instruction', task.instruction,
  'type', task.type,
  'scheduled_at', task.scheduled_at,
  'cron', task.cron,
  'time_zone', task.time_zone,
  'status', task.status,
  'reason', task.reason,
  'next_run_at', task.next_run_at,
  'run_count', task.run_count,
  'attempt', task.attempt,
  'execution_id', task.execution_id,
  'created_by', task.created_by,
  'created_at', task.created_at,
  'updated_at', task.updated_at)`;

/** A task with the fields that the API does not show. */
interface NewTask extends Task {
  due_at: number | null;
  parent_task_id: string | null;
  depth: number;
}

/** Stores a new task in the state that planTask() gave it, guarded by its worker's existence. */
export function insertTask(task: NewTask): Statement[] {
  return guarded(
    `insert into task (id, message_id, worker_id, session_key, instruction, type, scheduled_at, cron, time_zone,
        status, reason, next_run_at, due_at, created_by, parent_task_id, depth, created_at, updated_at)
      select ?, ?, id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
      from worker
      where id = ?`,
    [
      task.id,
      task.message_id,
      task.session_key,
      task.instruction,
      task.type,
      task.scheduled_at,
      task.cron,
      task.time_zone,
      task.status,
      task.reason,
      task.next_run_at,
      task.due_at,
      task.created_by,
      task.parent_task_id,
      task.depth,
      task.created_at,
      task.updated_at,
      task.worker_id,
    ],
    bellOf(task),
  );
}

function bellOf({ due_at, next_run_at }: NewTask): string | undefined {
  if (due_at !== null) return BELL.dispatcher;
  return next_run_at === null ? undefined : BELL.scheduler;
}

/** The task, or null. */
export async function findTask(db: Database, id: string): Promise<Task | null> {
  return parsed<Task>(await findTaskJson(db, id));
}

/** The task as JSON text, or null; null as well when it is outside the conversation that the caller is bound to. */
export async function findTaskJson(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<string | null> {
  const row = await db.first<{ json: string }>(
    `select ${TASK_JSON} as json
    from task
    where id = ? and (? is null or session_key = ?)`,
    [id, boundTo, boundTo],
  );
  return row?.json ?? null;
}

/** Tasks newest first. */
export function listTasks(
  db: Database,
  filter: Omit<TaskFilter, keyof Page>,
  boundTo: string | null,
  page: Page,
): Promise<Listing> {
  const where: string[] = [];
  const args: Value[] = [];
  if (filter.message_id !== undefined) oneOf(where, args, "task.message_id", filter.message_id);
  if (filter.worker_id !== undefined) oneOf(where, args, "task.worker_id", filter.worker_id);
  if (filter.session_key !== undefined) oneOf(where, args, "task.session_key", [filter.session_key]);
  if (filter.status !== undefined) oneOf(where, args, "+task.status", filter.status);
  if (filter.type !== undefined) oneOf(where, args, "task.type", filter.type);
  if (boundTo !== null) oneOf(where, args, "task.session_key", [boundTo]);
  return list(db, { table: "task", json: TASK_JSON, where, args }, page);
}

/** Number of a worker's active tasks by status. */
export async function countTasksByStatus(db: Database, workerId: string): Promise<Record<string, number>> {
  const rows = await db.read<{ status: string; total: number }>(
    `select status, count(*) as total
    from task
    where worker_id = ? and status ${TASK_IS_ACTIVE}
    group by status`,
    [workerId],
  );
  return Object.fromEntries(rows.map((row) => [row.status, row.total]));
}

/** Tasks of a worker that have not started, and for whose reply a conversation waits. */
export async function listWaitingReplies(
  db: Database,
  workerId: string,
): Promise<{ id: string; session_key: string; message_id: string; instruction: string }[]> {
  return await db.read(
    `select id, session_key, message_id, instruction
    from task
    where worker_id = ? and status in ('pending', 'scheduled') and session_key not like 'cli:%'`,
    [workerId],
  );
}
