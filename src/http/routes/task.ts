import { z } from "zod";
import { id } from "../../domain/call/field.ts";
import {
  TASK_BATCH_MAX_BYTES,
  taskBatchCreateSchema,
  taskBatchSchema,
} from "../../domain/work/task_batch.ts";
import {
  taskCreateSchema,
  taskListQuery,
  taskSchema,
  taskUpdateSchema,
  taskWaitQuery,
} from "../../domain/work/task.ts";
import { buildStreamedJson } from "../stream/streamed_json.ts";
import { defineRoute } from "../route.ts";

export const taskRoutes = [
  defineRoute("POST /api/tasks", {
    access: "write:tasks",
    operation: "task.create",
    summary: "Create a task for a worker, without the coordinator",
    description:
      "`countdown` needs `scheduled_at`, at least 5 seconds ahead; `scheduled` needs `cron`. A schedule " +
      "whose cron never fires is created as `cancelled` with a `reason`, as is a task whose parent in `after` has failed. " +
      "The results of the tasks in `after` are in the prompt of the task.",
    body: taskCreateSchema,
    status: 201,
    response: taskSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.task.create(call, body),
  }),
  defineRoute("POST /api/tasks/batch", {
    access: "write:tasks",
    operation: "task.create_all",
    summary: "Create up to 500 tasks, all or none",
    description:
      "Each task is as in `POST /api/tasks`, and the answer keeps their order. One invalid task refuses all; " +
      "`errors` names its index and field, such as `tasks.3.cron`. In `after`, `#1` is the first task of the batch.",
    body: taskBatchCreateSchema,
    bodyMaxBytes: TASK_BATCH_MAX_BYTES,
    status: 201,
    response: taskBatchSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.task.createAll(call, body),
  }),
  defineRoute("GET /api/tasks", {
    access: "read:tasks",
    operation: "task.list",
    summary: "List tasks of a session, a message or a worker, or after a task, newest first",
    query: taskListQuery,
    response: z.array(taskSchema),
    handle: ({ api, call, query }) => api.task.list(call, query),
  }),
  defineRoute("GET /api/tasks/:id", {
    access: "read:tasks",
    operation: "task.get",
    summary: "Get a task",
    params: { id },
    response: taskSchema,
    handle: ({ api, call, params }) => api.task.get(call, params.id),
  }),
  defineRoute("PUT /api/tasks/:id", {
    access: "write:tasks",
    operation: "task.update",
    summary: "Change a schedule or a countdown; absent fields stay as they are",
    description:
      "`paused: false` continues with the next time and skips missed ones. Setting `gate` or `verify` also requires " +
      "`write:commands`.",
    params: { id },
    body: taskUpdateSchema,
    response: taskSchema,
    handle: ({ api, call, params, body }) => api.task.update(call, params.id, body),
  }),
  defineRoute("POST /api/tasks/:id/cancel", {
    access: "write:tasks",
    operation: "task.cancel",
    summary: "Cancel a pending or scheduled task, or the next times of a running schedule",
    params: { id },
    body: z.strictObject({}),
    response: taskSchema,
    handle: ({ api, call, params }) => api.task.cancel(call, params.id),
  }),
  defineRoute("POST /api/tasks/:id/run", {
    access: "write:tasks",
    operation: "task.run",
    summary: "Run a scheduled task now without changing its schedule; `run_no` is the number of that run",
    params: { id },
    body: z.strictObject({}),
    response: taskSchema,
    idempotent: true,
    handle: ({ api, call, params }) => api.task.run(call, params.id),
  }),
  defineRoute("POST /api/tasks/:id/retry", {
    access: "write:tasks",
    operation: "task.retry",
    summary: "Run a failed or cancelled task again; attempts count on",
    description:
      "Tasks that waited for it and that its failure cancelled return to the queue, too. For a new task with the same " +
      "instruction, use `POST /api/executions/:id/retry`.",
    params: { id },
    body: z.strictObject({}),
    response: taskSchema,
    idempotent: true,
    handle: ({ api, call, params }) => api.task.retry(call, params.id),
  }),
  defineRoute("GET /api/tasks/:id/wait", {
    access: "read:tasks",
    operation: "task.wait",
    summary: "Wait for the end of a task, or of the current or next run of a schedule",
    description:
      "`run_no` from the answer of `run` waits for that run. Returns the task unchanged after `timeout_ms`.",
    params: { id },
    query: taskWaitQuery,
    response: taskSchema,
    handle: async ({ api, call, params, query }) => {
      await api.task.get(call, params.id);
      const limits = { runNo: query.run_no, timeoutMs: query.timeout_ms };
      return buildStreamedJson((signal) => api.task.wait(call, params.id, { ...limits, signal }));
    },
  }),
] as const;
