import { z } from "zod";
import { cancelTask, createTask, getTask, listTasks, runTask, waitForTask } from "../../api/task.ts";
import { id } from "../../domain/field.ts";
import { taskCreateSchema, taskListQuery, taskSchema, taskWaitQuery } from "../../domain/task.ts";
import { lateJson } from "../late_json.ts";
import { route } from "../route.ts";

export const taskRoutes = [
  route({
    method: "POST",
    path: "/api/tasks",
    access: "write:tasks",
    operation: "task.create",
    summary: "Give a task to a worker, past the coordinator",
    description:
      "`countdown` needs `scheduled_at`, at least 5 seconds ahead; `scheduled` needs `cron`. A schedule " +
      "whose cron cannot fire is created `cancelled`, with the `reason`.",
    body: taskCreateSchema,
    status: 201,
    response: taskSchema,
    idempotent: true,
    handle: ({ service, call, body }) => createTask(service, call, body),
  }),
  route({
    method: "GET",
    path: "/api/tasks",
    access: "read:tasks",
    operation: "task.list",
    summary: "List tasks, newest first, of a session, a message or a worker",
    query: taskListQuery,
    status: 200,
    response: z.array(taskSchema),
    paged: true,
    handle: async ({ service, call, query }) => ({ listing: await listTasks(service, call, query) }),
  }),
  route({
    method: "GET",
    path: "/api/tasks/:id",
    access: "read:tasks",
    operation: "task.get",
    summary: "Get a task",
    params: { id },
    status: 200,
    response: taskSchema,
    handle: async ({ service, call, params }) => ({ json: await getTask(service, call, params.id) }),
  }),
  route({
    method: "POST",
    path: "/api/tasks/:id/cancel",
    access: "write:tasks",
    operation: "task.cancel",
    summary: "Cancel a pending or scheduled task, or a running schedule's future",
    params: { id },
    body: z.strictObject({}),
    status: 200,
    response: taskSchema,
    handle: async ({ service, call, params }) => ({ json: await cancelTask(service, call, params.id) }),
  }),
  route({
    method: "POST",
    path: "/api/tasks/:id/run",
    access: "write:tasks",
    operation: "task.run",
    summary: "Run a scheduled task now; its schedule stays as it is",
    params: { id },
    body: z.strictObject({}),
    status: 200,
    response: taskSchema,
    handle: async ({ service, call, params }) => ({ json: await runTask(service, call, params.id) }),
  }),
  route({
    method: "GET",
    path: "/api/tasks/:id/wait",
    access: "read:tasks",
    operation: "task.wait",
    summary: "Wait until a task has ended, a schedule until its current or next run has",
    description: "Answers the task as it stands when `timeout_ms` are over.",
    params: { id },
    query: taskWaitQuery,
    status: 200,
    response: taskSchema,
    handle: async ({ service, call, params, query }) => {
      await getTask(service, call, params.id);
      return {
        response: lateJson((signal) => waitForTask(service, call, params.id, query.timeout_ms, signal)),
      };
    },
  }),
] as const;
