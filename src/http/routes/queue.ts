import { z } from "zod";
import { cancelQueue, listQueue } from "../../api/queue.ts";
import { queueCancelledSchema, queueCancelSchema, queueQuery, taskSchema } from "../../domain/task.ts";
import { route } from "../route.ts";

export const queueRoutes = [
  route({
    method: "GET",
    path: "/api/queue",
    access: "read:tasks",
    operation: "queue.list",
    summary: "List the active tasks of all workers and conversations, newest first",
    query: queueQuery,
    status: 200,
    response: z.array(taskSchema),
    paged: true,
    handle: async ({ service, call, query }) => ({ listing: await listQueue(service, call, query) }),
  }),
  route({
    method: "POST",
    path: "/api/queue/cancel",
    access: "write:tasks",
    operation: "queue.cancel",
    summary: "Cancel all waiting and scheduled tasks that match, if there are as many as expected",
    body: queueCancelSchema,
    status: 200,
    response: queueCancelledSchema,
    handle: async ({ service, call, body }) => ({ value: await cancelQueue(service, call, body) }),
  }),
] as const;
