import { z } from "zod";
import {
  content,
  CONTENT_MAX_BYTES,
  id,
  ignoreFields,
  line,
  parseInteger,
  parseIntegerOr,
  parseList,
  parseTextList,
  refFilter,
  sessionKeyFilter,
  sessionKeysFilter,
  text,
  textFilter,
  time,
  truncated,
} from "../call/field.ts";
import { heldBySchema } from "./block.ts";
import { launchSchema } from "./launch.ts";
import { messageId } from "../call/message_id.ts";
import { buildPageQuery } from "../call/page.ts";
import { buildDefaultOptions, optionFields, optionInputs, type ScheduleOptions } from "./schedule.ts";
import { AFTER_TASKS_MAX } from "./task_parent.ts";
import {
  AFTER_CONDITIONS,
  LAST_STATUSES,
  TASK_STATUSES,
  TASK_TYPES,
  type TaskStatus,
} from "../call/vocabulary.ts";

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
  ...optionFields,
  after: z.array(id).meta({ description: "the tasks that it waits for" }),
  after_when: z.enum(AFTER_CONDITIONS).meta({
    description: "success: a failed or cancelled one cancels this task; end: it runs however they end",
  }),
  status: z.enum(TASK_STATUSES),
  reason: z.string().meta({ description: "why it is cancelled, failed or waiting" }),
  held_by: heldBySchema.nullable().meta({ description: "what blocks the task while it is pending" }),
  launch: launchSchema.nullable().meta({ description: "the launch that starts a runner for it" }),
  next_run_at: time.nullable(),
  run_count: z.int(),
  attempt: z.int(),
  execution_id: id.nullable().meta({ description: "the latest execution" }),
  run_no: z.int().meta({ description: "number of runs that were requested or fell due" }),
  last_status: z.enum(LAST_STATUSES).meta({ description: "how the latest run of a schedule ended" }),
  last_run_at: time.nullable().meta({ description: "when that run started" }),
  last_error: z.string(),
  failures_in_row: z.int().meta({ description: "consecutive failed runs of a schedule" }),
  runs_ended: z.int().meta({ description: "ended runs of a schedule, without those that a gate skipped" }),
  created_by: z.string(),
  created_at: time,
  updated_at: time,
  truncated,
}).meta({ id: "Task" });
export type Task = z.output<typeof taskSchema>;

/** planTask() decides which times a type needs. */
export const taskCreateSchema = z.strictObject({
  message_id: messageId,
  worker_id: line(100),
  instruction: content(CONTENT_MAX_BYTES),
  type: z.enum(TASK_TYPES, { error: `must be one of ${TASK_TYPES.join(", ")}` }),
  scheduled_at: time.optional(),
  cron: text(1_000).optional(),
  time_zone: text(100).optional(),
  after: z.array(line(100)).max(AFTER_TASKS_MAX).optional().meta({
    description: "ids of tasks to wait for; in a batch also #1 for its first task, but only earlier ones",
  }),
  after_when: z.enum(AFTER_CONDITIONS).optional(),
  ...z.strictObject(optionInputs).partial().shape,
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

/**
 * Changes a schedule or a countdown. A field that the request omits stays unchanged. PUT ignores read-only fields (contract 15, contract
 * 1.2).
 */
export const taskUpdateSchema = z.strictObject({
  ...optionInputs,
  instruction: taskCreateSchema.shape.instruction,
  cron: text(1_000),
  time_zone: text(100),
  scheduled_at: time.nullable(),
  worker_id: line(100),
  ...ignoreFields(
    "id",
    "message_id",
    "session_key",
    "type",
    "status",
    "reason",
    "next_run_at",
    "run_count",
    "attempt",
    "execution_id",
    "run_no",
    "runs_ended",
    "failures_in_row",
    "last_status",
    "last_run_at",
    "last_error",
    "held_by",
    "launch",
    "after",
    "after_when",
    "created_by",
    "created_at",
    "updated_at",
  ),
}).partial().meta({ id: "TaskUpdate", examples: [{ cron: "0 7 * * 1-5" }, { paused: true }] });
export type TaskUpdate = z.output<typeof taskUpdateSchema>;

export const taskListQuery = {
  ref: refFilter.optional(),
  session_key: sessionKeysFilter.optional(),
  message_id: parseTextList().optional(),
  worker_id: parseList(z.string().min(1)).optional(),
  after: parseList(z.string().min(1)).optional().meta({ description: "tasks that wait for this one" }),
  status: parseList(z.enum(TASK_STATUSES)).optional(),
  type: parseList(z.enum(TASK_TYPES)).optional(),
  text: textFilter.optional(),
  ...buildPageQuery(),
};
export type TaskFilter = z.output<z.ZodObject<typeof taskListQuery>>;

export const queueQuery = {
  session_key: sessionKeysFilter.optional(),
  worker_id: parseList(z.string().min(1)).optional(),
  status: parseList(z.enum(TASK_STATUSES)).optional()
    .meta({ description: "default: the active statuses" }),
  type: parseList(z.enum(TASK_TYPES)).optional(),
  text: textFilter.optional(),
  ...buildPageQuery(),
};
export type QueueFilter = z.output<z.ZodObject<typeof queueQuery>>;

export const QUEUE_CANCEL_MAX = 1_000;

const CANCELLABLE_STATUSES = ["scheduled", "pending"] as const satisfies TaskStatus[];

/**
 * `expected` is the number of tasks that the caller saw. The service refuses the request when the number differs (contract
 * 17).
 */
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

export const queueCancelledSchema = z.strictObject({ cancelled_tasks: z.int() }).meta({
  id: "QueueCancelled",
});
export type QueueCancelResult = z.output<typeof queueCancelledSchema>;

export const taskWaitQuery = {
  run_no: parseInteger(1, 1_000_000_000).optional().meta({
    type: "integer",
    minimum: 1,
    description: "wait until this run has ended",
  }),
  timeout_ms: parseIntegerOr(30_000, [0, 600_000]),
};

/** The initial state of a task. */
export interface TaskPlan
  extends Pick<Task, "reason" | "scheduled_at" | "cron" | "time_zone" | "next_run_at"> {
  status: "pending" | "scheduled" | "cancelled";
  due_at: number | null;
}

type TaskSeed = Pick<
  Task,
  "id" | "message_id" | "worker_id" | "session_key" | "instruction" | "type" | "created_by"
>;

/** Builds a new task, with its fields in the order of the API. */
export function buildNewTask(
  seed:
    & TaskSeed
    & Partial<Pick<Task, "after" | "held_by"> & { after_when: Task["after_when"] | undefined }>
    & Partial<{ [K in keyof ScheduleOptions]: ScheduleOptions[K] | undefined }>,
  plan: Omit<TaskPlan, "due_at">,
  now: number,
): Task {
  const options = Object.entries(buildDefaultOptions(seed.type)).map(([name, value]) =>
    [name, seed[name as keyof ScheduleOptions] ?? value] as const
  );
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
    ...Object.fromEntries(options) as unknown as ScheduleOptions,
    after: seed.after ?? [],
    after_when: seed.after_when ?? "success",
    status: plan.status,
    reason: plan.reason,
    held_by: seed.held_by ?? null,
    launch: null,
    next_run_at: plan.next_run_at,
    run_count: 0,
    attempt: 0,
    execution_id: null,
    run_no: plan.status === "pending" ? 1 : 0,
    last_status: "",
    last_run_at: null,
    last_error: "",
    failures_in_row: 0,
    runs_ended: 0,
    created_by: seed.created_by,
    created_at: now,
    updated_at: now,
  };
}
