import { z } from "zod";
import { queueCancelledSchema, queueCancelSchema, queueQuery, taskSchema } from "../../domain/work/task.ts";
import { defineRoute } from "../route.ts";

export const queueRoutes = [
  defineRoute("GET /api/queue", {
    access: "read:tasks",
    operation: "queue.list",
    summary: "List active tasks of all workers and conversations, or those with a status, newest first",
    query: queueQuery,
    response: z.array(taskSchema),
    handle: ({ api, call, query }) => api.queue.list(call, query),
  }),
  defineRoute("POST /api/queue/cancel", {
    access: "write:tasks",
    operation: "queue.cancel",
    summary: "Cancel all matching pending and scheduled tasks, if their number is the expected one",
    body: queueCancelSchema,
    response: queueCancelledSchema,
    handle: ({ api, call, body }) => api.queue.cancel(call, body),
  }),
] as const;
