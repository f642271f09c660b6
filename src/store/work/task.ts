import { z } from "zod";
import { WAKEUP } from "../../base/wakeups.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import type { Json } from "../../domain/call/json.ts";
import { type Task, type TaskFilter, taskSchema } from "../../domain/work/task.ts";
import { type Database, guarded, type Row, type Statement, type Value } from "../db/database.ts";
import { type Filters, inConversation, named, oneOf, whereOf } from "../db/filter.ts";
import { list, parsed } from "../db/list.ts";
import { columnValue, fieldsOf, firstShown, shown } from "../db/json_projection.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";

/** The JSON of a task. */
export const TASK_JSON = shown("task", taskSchema, {
  // The window of an engine is the engine's, too; only the part of it that is kept for people has a name of its own.
  held_by: `json(iif(task.status = 'pending' and task.held <> '', json_object(
    'kind', replace(substr(task.held, 1, instr(task.held, ':') - 1), 'reserve', 'engine'),
    'id', substr(task.held, instr(task.held, ':') + 1),
    'until', task.held_until), 'null'))`,
  // What is paused has no next time, and a new one when it goes on.
  next_run_at: "iif(task.paused, null, task.next_run_at)",
});

/** Which texts of a task may be large. */
export const TASK_TEXTS = ["instruction", "reason"];

// What a row holds: of the fields that the API shows those that are stored, and what only the service needs.
const storedSchema = taskSchema.omit({ held_by: true, truncated: true }).extend({
  due_at: z.int().nullable(),
  parent_task_id: z.string().nullable(),
  depth: z.int(),
});

/** A task with the fields that the API does not show. */
export type NewTask = z.output<typeof storedSchema>;

/** The columns of a new task. */
export const TASK_COLUMNS = fieldsOf(storedSchema);

/** Stores a new task in the state that planTask() gave it, guarded by its worker's existence. */
export function insertTask(task: NewTask): Statement[] {
  return guarded(
    `insert into task (${TASK_COLUMNS.join(", ")})
      select ${TASK_COLUMNS.map(() => "?").join(", ")}
      from worker
      where id = ?`,
    [...valuesOf(task), task.worker_id],
    chooseWakeup(task),
  );
}

/** The values of the columns of a new task. */
export function valuesOf(task: NewTask): Value[] {
  return TASK_COLUMNS.map((name) => columnValue(storedSchema, name, task[name]));
}

/** The bell of the stage that a new task is work for. */
export function chooseWakeup({ due_at, next_run_at }: NewTask): string | undefined {
  if (due_at !== null) return WAKEUP.dispatcher;
  return next_run_at === null ? undefined : WAKEUP.scheduler;
}

/** The task, or null. */
export async function findTask(db: Database, id: string): Promise<Task | null> {
  return parsed(await findTaskJson(db, id));
}

/** The task as JSON text, or null; null as well when it is outside the conversation that the caller is bound to. */
export function findTaskJson(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<Json<Task> | null> {
  const rest = "from task where id = ? and (? is null or session_key = ?)";
  return firstShown(db, TASK_JSON, rest, [id, boundTo, boundTo]);
}

const FILTERS: Filters<TaskFilter> = {
  ref: named("task"),
  session_key: oneOf("task.session_key"),
  message_id: oneOf("task.message_id"),
  worker_id: oneOf("task.worker_id"),
  // With + no index is used for it: those of the other filters narrow the list more.
  status: oneOf("+task.status"),
  type: oneOf("task.type"),
};

/** Tasks newest first. */
export function listTasks(
  db: Database,
  filter: TaskFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = whereOf(filter, FILTERS);
  inConversation(where, "task.session_key", boundTo);
  return list(db, { table: "task", json: TASK_JSON, texts: TASK_TEXTS, where }, page);
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

/** A task that has not started, and for whose reply a conversation waits. */
interface WaitingReply extends Row {
  id: string;
  session_key: string;
  message_id: string;
  /** Its first characters. */
  beginning: string;
  /** How many more of the same conversation wait that are not listed. */
  more: number;
}

const WAITING_LISTED_MAX = 10;
const BEGINNING_CHARACTERS = 200;

/** Tasks of a worker that have not started, and for whose reply a conversation waits: of each conversation the oldest ten. */
export function listWaitingReplies(db: Database, workerId: string): Promise<WaitingReply[]> {
  return db.read<WaitingReply>(
    `select id, session_key, message_id, substr(instruction, 1, ${BEGINNING_CHARACTERS}) as beginning,
      iif(place = ${WAITING_LISTED_MAX}, total - place, 0) as more
    from (
      select id, row_number() over (partition by session_key order by id) as place,
        count(*) over (partition by session_key) as total
      from task
      where worker_id = ? and status ${TASK_IS_ACTIVE} and +status <> 'running' and session_key not like 'cli:%')
    join task using (id)
    where place <= ${WAITING_LISTED_MAX}`,
    [workerId],
  );
}

/** What a task asks for. */
interface Work extends Row {
  instruction: string;
  /** JSON text of what decides whether it runs; 'null' where nothing does. */
  gate: string;
  /** What its gate let through before, with the gate's output, when the run is tried again; else null. */
  passed: string | null;
}

/** What a task asks for, or null when it is gone. */
export function findWork(db: Database, id: string): Promise<Work | null> {
  return db.first<Work>(
    `select instruction, iif(type = 'immediate', 'null', gate) as gate, (
      select execution.instruction
      from occurrence
      join execution on execution.id = occurrence.execution_id
      where occurrence.task_id = task.id and occurrence.run_no = task.run_no and occurrence.gate_exit = 0) as passed
    from task
    where id = ?`,
    [id],
  );
}
