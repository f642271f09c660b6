import { z } from "zod";
import { type Backoff, backoffMs } from "../base/backoff.ts";
import { cronFault, nextOccurrence } from "./cron.ts";
import { invalid } from "./error.ts";
import {
  content,
  CONTENT_MAX_BYTES,
  id,
  isTimeZone,
  line,
  listOf,
  refFilter,
  sessionKeyFilter,
  sessionKeysFilter,
  text,
  textsOf,
  time,
  truncated,
  whole,
} from "./field.ts";
import { heldBySchema } from "./hold.ts";
import { messageId } from "./message.ts";
import { pageQuery } from "./page.ts";
import {
  ACTIVE_TASK_STATUSES,
  LAST_STATUSES,
  TASK_STATUSES,
  TASK_TYPES,
  type TaskStatus,
} from "./vocabulary.ts";

/** How far ahead a countdown has to be (interface 4.2, interface 8). */
const COUNTDOWN_LEAD_MIN_MS = 5_000;

/** A task as the API shows it (interface 2, Task; contract 3, Task). */
export const taskSchema = z.strictObject({
  id,
  message_id: z.string(),
  worker_id: id,
  session_key: z.string(),
  instruction: z.string(),
  type: z.enum(TASK_TYPES),
  scheduled_at: time.nullable(),
  cron: z.string(),
  time_zone: z.string(),
  status: z.enum(TASK_STATUSES),
  reason: z.string().meta({ description: "why it is cancelled, failed or waiting" }),
  held_by: heldBySchema.nullable().meta({ description: "what holds it while it is pending" }),
  next_run_at: time.nullable(),
  run_count: z.int(),
  attempt: z.int(),
  execution_id: id.nullable().meta({ description: "the latest execution" }),
  run_no: z.int().meta({ description: "counts the runs that were asked for or fell due" }),
  last_status: z.enum(LAST_STATUSES).meta({ description: "how the latest run of a schedule ended" }),
  last_run_at: time.nullable().meta({ description: "when that run began" }),
  last_error: z.string(),
  failures_in_row: z.int().meta({ description: "failed runs of a schedule since the last that completed" }),
  created_by: z.string(),
  created_at: time,
  updated_at: time,
  truncated,
}).meta({ id: "Task" });

export type Task = z.output<typeof taskSchema>;

/** Body of POST /api/tasks. planTask() decides which of the times a type needs (interface 4.2, task create). */
export const taskCreateSchema = z.strictObject({
  message_id: messageId,
  worker_id: line(100),
  instruction: content(CONTENT_MAX_BYTES),
  type: z.enum(TASK_TYPES, { error: `must be one of ${TASK_TYPES.join(", ")}` }),
  scheduled_at: time.optional(),
  cron: text(1_000).optional(),
  time_zone: text(100).optional(),
}).meta({
  id: "TaskCreate",
  examples: [
    {
      message_id: "nightly-report",
      worker_id: "01a1fd23-4a4c-746f-99ac-8860e2641168",
      instruction: "Sum up the day",
      type: "scheduled",
      cron: "0 22 * * 1-5",
      time_zone: "Europe/Berlin",
    },
    {
      message_id: "nightly-report",
      worker_id: "01a1fd23-4a4c-746f-99ac-8860e2641168",
      instruction: "Say hello",
      type: "immediate",
    },
  ],
});

export type TaskCreate = z.output<typeof taskCreateSchema>;

/** Query of GET /api/tasks (interface 4.2, task list). */
export const taskListQuery = {
  ref: refFilter.optional(),
  session_key: sessionKeysFilter.optional(),
  message_id: textsOf().optional(),
  worker_id: listOf(z.string().min(1)).optional(),
  status: listOf(z.enum(TASK_STATUSES)).optional(),
  type: listOf(z.enum(TASK_TYPES)).optional(),
  ...pageQuery(),
};

export type TaskFilter = z.output<z.ZodObject<typeof taskListQuery>>;

/** Query of GET /api/queue: the active tasks of all (contract 17). */
export const queueQuery = {
  session_key: sessionKeysFilter.optional(),
  worker_id: listOf(z.string().min(1)).optional(),
  status: listOf(z.enum(ACTIVE_TASK_STATUSES)).optional(),
  type: listOf(z.enum(TASK_TYPES)).optional(),
  ...pageQuery(),
};

export type QueueFilter = z.output<z.ZodObject<typeof queueQuery>>;

/** Most tasks that one request cancels. */
export const QUEUE_CANCEL_MAX = 1_000;

const CANCELLABLE_STATUSES = ["scheduled", "pending"] as const satisfies TaskStatus[];

/** Body of POST /api/queue/cancel. `expected` is how many tasks the caller saw: another count changes nothing (contract 17). */
export const queueCancelSchema = z.strictObject({
  filter: z.strictObject({
    worker_id: id,
    session_key: sessionKeyFilter,
    status: z.enum(CANCELLABLE_STATUSES),
    type: z.enum(TASK_TYPES),
  }).partial(),
  expected: z.int().min(1).max(QUEUE_CANCEL_MAX),
}).meta({ id: "QueueCancel", examples: [{ filter: { status: "pending" }, expected: 12 }] });

export type QueueCancel = z.output<typeof queueCancelSchema>;

/** Answer of POST /api/queue/cancel. */
export const queueCancelledSchema = z.strictObject({ cancelled_tasks: z.int() }).meta({
  id: "QueueCancelled",
});

export type QueueCancelled = z.output<typeof queueCancelledSchema>;

/** Query of GET /api/tasks/:id/wait; `run_no` waits for that run of a task and no other (contract 8.9). */
export const taskWaitQuery = {
  run_no: whole(1, 1_000_000_000).optional().meta({
    type: "integer",
    minimum: 1,
    description: "until this run has ended",
  }),
  timeout_ms: whole(0, 600_000).default(30_000).meta({
    type: "integer",
    minimum: 0,
    maximum: 600_000,
    default: 30_000,
  }),
};

const RETRY: Backoff = { firstMs: 1_000, lastMs: 16_000, factor: 4 };

/** Ms to wait before a lost run is tried again: 1, 4, 16 s (contract 3, Task). `attempt` counts from 1. */
export function retryDelayMs(attempt: number): number {
  return backoffMs(RETRY, attempt);
}

/** The state in which a new task begins. */
export interface TaskPlan {
  status: "pending" | "scheduled" | "cancelled";
  reason: string;
  scheduled_at: number | null;
  cron: string;
  time_zone: string;
  next_run_at: number | null;
  due_at: number | null;
}

/** What a task's type needs and may not have (interface 4.2, task create). */
const FIELDS_OF_TYPE = {
  immediate: [],
  countdown: ["scheduled_at"],
  scheduled: ["cron", "time_zone"],
} as const;

/**
 * Decides in which state a new task begins: to run at once, at its time, on its schedule, or cancelled with the
 * reason when its cron cannot fire (contract 3, Task). Throws `invalid_request` for fields that do not go with the
 * type, an unknown time zone, and a countdown that is less than COUNTDOWN_LEAD_MIN_MS ahead.
 */
export function planTask(
  input: Pick<TaskCreate, "type" | "scheduled_at" | "cron" | "time_zone">,
  now: number,
  defaultZone: string,
): TaskPlan {
  const allowed: readonly string[] = FIELDS_OF_TYPE[input.type];
  for (const name of ["scheduled_at", "cron", "time_zone"] as const) {
    if (input[name] === undefined || input[name] === "" || allowed.includes(name)) continue;
    throw invalid(name, `does not go with type ${input.type}; leave it out`);
  }
  const none = { reason: "", scheduled_at: null, cron: "", time_zone: "", next_run_at: null, due_at: null };
  if (input.type === "immediate") return { ...none, status: "pending", due_at: now };
  if (input.type === "countdown") {
    const at = input.scheduled_at;
    if (at === undefined) throw invalid("scheduled_at", "is missing; a countdown needs its time in Unix ms");
    if (at < now + COUNTDOWN_LEAD_MIN_MS) {
      throw invalid(
        "scheduled_at",
        `must be at least 5 seconds ahead of the server's clock, which says ${now}`,
      );
    }
    return { ...none, status: "scheduled", scheduled_at: at, next_run_at: at };
  }
  return planSchedule(input, now, defaultZone);
}

function planSchedule(
  input: Pick<TaskCreate, "cron" | "time_zone">,
  now: number,
  defaultZone: string,
): TaskPlan {
  const { cron, time_zone = "" } = input;
  if (cron === undefined) {
    throw invalid("cron", "is missing; a scheduled task needs five fields, such as 0 9 * * 1-5");
  }
  const zone = time_zone === "" ? defaultZone : time_zone;
  if (!isTimeZone(zone)) throw invalid("time_zone", "must be a time zone such as Europe/Berlin or UTC");
  const base = { scheduled_at: null, cron, time_zone, due_at: null };
  const fault = cronFault(cron, zone, now);
  if (fault !== null) return { ...base, status: "cancelled", reason: fault, next_run_at: null };
  return { ...base, status: "scheduled", reason: "", next_run_at: nextRunAt(base, defaultZone, now) };
}

/**
 * When a schedule fires next, strictly after `after`; null: never again. Nothing else works out `next_run_at`.
 * `defaultZone` is the zone of tasks that name none.
 */
export function nextRunAt(
  task: Pick<Task, "cron" | "time_zone">,
  defaultZone: string,
  after: number,
): number | null {
  return nextOccurrence(task.cron, task.time_zone || defaultZone, after);
}

/** What a new task needs beside its plan. */
interface TaskSeed {
  id: string;
  message_id: string;
  worker_id: string;
  session_key: string;
  instruction: string;
  type: Task["type"];
  created_by: string;
}

/** A new task, with its fields in the order of the API. */
export function newTask(seed: TaskSeed, plan: Omit<TaskPlan, "due_at">, now: number): Task {
  return {
    id: seed.id,
    message_id: seed.message_id,
    worker_id: seed.worker_id,
    session_key: seed.session_key,
    instruction: seed.instruction,
    type: seed.type,
    scheduled_at: plan.scheduled_at,
    cron: plan.cron,
    time_zone: plan.time_zone,
    status: plan.status,
    reason: plan.reason,
    held_by: null,
    next_run_at: plan.next_run_at,
    run_count: 0,
    attempt: 0,
    execution_id: null,
    run_no: plan.status === "pending" ? 1 : 0,
    last_status: "",
    last_run_at: null,
    last_error: "",
    failures_in_row: 0,
    created_by: seed.created_by,
    created_at: now,
    updated_at: now,
  };
}
