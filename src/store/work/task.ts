import { z } from "zod";
import { WAKEUP } from "../../base/wakeups.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import type { Json } from "../../domain/call/json.ts";
import { launchSchema } from "../../domain/work/launch.ts";
import { HOLD_ADVICE, LAUNCHER_ADVICE } from "../../domain/work/block.ts";
import { buildNewTask, type Task, type TaskFilter, taskSchema } from "../../domain/work/task.ts";
import { planTask } from "../../domain/work/task_plan.ts";
import { type Database, guard, guardRows, type Statement, type Value } from "../db/database.ts";
import {
  buildWhere,
  type Filters,
  limitToConversation,
  matchAny,
  matchColumns,
  matchReference,
  matchText,
  type Where,
} from "../db/filter.ts";
import { list, parseNullableJson, readBoundJson } from "../db/list.ts";
import { buildJsonSql, listFields, toColumnValue } from "../db/json_projection.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";

const OPEN_PARENTS =
  "select parent_id from task_parent where task_id = task.id and status = '' order by position";

// A reserved share of an engine's window is the internal kind `reserve`, and a launcher that starts nothing now is `launcher`.
const HOLD_KIND = `case substr(task.held, 1, instr(task.held, ':') - 1)
    when 'reserve' then 'engine' when 'launcher' then 'launch'
    else substr(task.held, 1, instr(task.held, ':') - 1) end`;

const JSON_SQL = buildJsonSql("task", taskSchema, {
  held_by: `json(iif(task.status = 'pending' and task.open_parents > 0, json_object(
    'kind', 'task',
    'id', (${OPEN_PARENTS} limit 1),
    'ids', (select json_group_array(parent_id) from (${OPEN_PARENTS})),
    'until', null,
    'advice', '${HOLD_ADVICE.task}'), iif(task.status = 'pending' and task.held <> '', json_object(
    'kind', ${HOLD_KIND},
    'id', substr(task.held, instr(task.held, ':') + 1),
    'until', task.held_until,
    'advice', case when task.held like 'launcher:%' then '${LAUNCHER_ADVICE}' else case ${HOLD_KIND} ${
    Object.entries(HOLD_ADVICE).map(([kind, advice]) => `when '${kind}' then '${advice}'`).join(" ")
  } end end), 'null')))`,
  launch: `json(iif(task.status = 'pending', (
    select ${
    buildJsonSql("launch", launchSchema)
  } from launch where task_id = task.id and ended_at is null), null))`,
  // A paused schedule has no next time. Resuming it sets a new one.
  next_run_at: "iif(task.paused, null, task.next_run_at)",
});

export const TASKS = { table: "task", json: JSON_SQL, texts: ["instruction", "reason"] };

// The stored fields: the API's fields that have a column, and internal fields.
const storedSchema = taskSchema.omit({ held_by: true, launch: true, truncated: true }).extend({
  due_at: z.int().nullable(),
  parent_task_id: z.string().nullable(),
  depth: z.int(),
  after_depth: z.int(),
  open_parents: z.int(),
  stopped_by: z.string(),
});

type StoredTask = z.output<typeof storedSchema>;

// A task that waits for no other.
const NO_PARENTS = { after_depth: 0, open_parents: 0, stopped_by: "" };

export type NewTask = Omit<StoredTask, keyof typeof NO_PARENTS> & Partial<typeof NO_PARENTS>;

const TASK_COLUMNS = listFields(storedSchema);

/** Stores a new task in the state that planTask() chose, guarded by the existence of its worker. */
export function insertTask(task: NewTask): Statement[] {
  return guard(
    `insert into task (${TASK_COLUMNS.join(", ")})
      select ${TASK_COLUMNS.map(() => "?").join(", ")}
      from worker
      where id = ?`,
    [...listTaskValues(task), task.worker_id],
    chooseWakeup(task),
  );
}

function listTaskValues(task: NewTask): Value[] {
  const row: StoredTask = { ...NO_PARENTS, ...task };
  return TASK_COLUMNS.map((name) => toColumnValue(storedSchema, name, row[name]));
}

/** Returns the stage to wake for a new task. */
export function chooseWakeup({ due_at, next_run_at }: NewTask): string | undefined {
  if (due_at !== null) return WAKEUP.dispatcher;
  return next_run_at === null ? undefined : WAKEUP.scheduler;
}

export async function findTask(db: Database, id: string): Promise<Task | null> {
  return parseNullableJson(await findTaskJson(db, id));
}

/** Finds the task as JSON text. Null also outside the conversation that the caller is bound to. */
export function findTaskJson(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<Json<Task> | null> {
  return readBoundJson(db, TASKS, id, boundTo);
}

/** The columns that the filter `text` searches. */
export const TASK_TEXTS = ["task.instruction", "task.name", "task.reason"];

const FILTERS: Filters<TaskFilter> = {
  ref: matchReference("task"),
  ...matchColumns("task", ["session_key", "message_id", "worker_id", "type"]),
  after: matchAfter,
  // The + keeps SQLite from using this index, because the indexes of the other filters are more selective.
  status: matchAny("+task.status"),
  text: matchText(TASK_TEXTS, "task"),
};

function matchAfter({ conditions, args }: Where, ids: string | readonly string[]): void {
  conditions.push(
    "task.id in (select task_id from task_parent where parent_id in (select value from json_each(?)))",
  );
  args.push(JSON.stringify([ids].flat()));
}

export function listTasks(
  db: Database,
  filter: TaskFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = buildWhere(filter, FILTERS);
  limitToConversation(where, "task.session_key", boundTo);
  return list(db, { ...TASKS, where }, page);
}

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

/** A task that has not started and whose reply a conversation waits for. */
interface WaitingReply {
  id: string;
  session_key: string;
  message_id: string;
  beginning: string;
  /** Number of further tasks of the same conversation. */
  more: number;
}

const WAITING_LISTED_MAX = 10;
const BEGINNING_CHARACTERS = 200;

/** Lists tasks of a worker that have not started and whose reply a conversation waits for, the oldest ten of each conversation. */
export function listWaitingReplies(db: Database, workerId: string): Promise<WaitingReply[]> {
  return db.read<WaitingReply>(
    `select id, session_key, message_id, substr(instruction, 1, ${BEGINNING_CHARACTERS}) as beginning,
      iif(position = ${WAITING_LISTED_MAX}, total - position, 0) as more
    from (
      select id, row_number() over (partition by session_key order by id) as position,
        count(*) over (partition by session_key) as total
      from task
      where worker_id = ? and status ${TASK_IS_ACTIVE} and +status <> 'running' and session_key not like 'cli:%')
    join task using (id)
    where position <= ${WAITING_LISTED_MAX}`,
    [workerId],
  );
}

interface TaskWork {
  instruction: string;
  /** JSON text of the gate, 'null' without one. */
  gate: string;
  /** For a retry after a passed gate: the instruction with the gate's output. Else null. */
  passed: string | null;
  /** JSON list of words that people sent to earlier attempts. */
  steers: string;
}

export function findWork(db: Database, id: string): Promise<TaskWork | null> {
  return db.first<TaskWork>(
    `select instruction, iif(type = 'immediate', 'null', gate) as gate, (
      select execution.instruction
      from occurrence
      join execution on execution.id = occurrence.execution_id
      where occurrence.task_id = task.id and occurrence.run_no = task.run_no and occurrence.gate_exit = 0) as passed, (
      select json_group_array(content)
      from (select content from steer where task_id = task.id and carried = 1 order by id)) as steers
    from task
    where id = ?`,
    [id],
  );
}

const WORKER_AT = TASK_COLUMNS.indexOf("worker_id");

/** Stores new tasks in one statement and in their order, guarded by the existence of all their workers. */
export function insertTasks(tasks: readonly NewTask[]): Statement[] {
  const wakeups = tasks.flatMap((task) => chooseWakeup(task) ?? []);
  return guardRows(tasks.length, {
    sql: `insert into task (${TASK_COLUMNS.join(", ")})
      select ${TASK_COLUMNS.map((_, at) => `one.value ->> ${at}`).join(", ")}
      from json_each(?) as one
      cross join worker on worker.id = one.value ->> ${WORKER_AT}
      order by one.key`,
    args: [JSON.stringify(tasks.map(listTaskValues))],
    wakeup: [...new Set(wakeups)],
  });
}

/** Column values of a new task as SQL, by column. */
export type TaskValues = Partial<Record<string, { sql: string; args: Value[] }>>;

/** Stores an immediate task for each row of the query `from`, with these values of its row and otherwise the defaults. */
export function insertImmediateTasks(
  values: TaskValues,
  from: { sql: string; args: Value[] },
  now: number,
): Statement {
  const { due_at, ...plan } = planTask({ type: "immediate" }, now, "");
  const texts = { id: "", message_id: "", worker_id: "", session_key: "", instruction: "", created_by: "" };
  const task = buildNewTask({ ...texts, type: "immediate" }, plan, now);
  const defaults = listTaskValues({ ...task, due_at, parent_task_id: null, depth: 0 });
  const columns = TASK_COLUMNS.map((name, at) =>
    values[name] ?? { sql: "?", args: defaults.slice(at, at + 1) }
  );
  return {
    sql: `insert into task (${TASK_COLUMNS.join(", ")})
      select ${columns.map(({ sql }) => sql).join(", ")} ${from.sql}`,
    args: [...columns.flatMap(({ args }) => args), ...from.args],
    wakeup: WAKEUP.dispatcher,
  };
}

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

export async function listWorkerEngines(db: Database, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.read<{ id: string; engine: string }>(
    "select id, engine from worker where id in (select value from json_each(?))",
    [JSON.stringify(ids)],
  );
  return new Map(rows.map(({ id, engine }) => [id, engine]));
}
