import { z } from "zod";
import { id } from "../../domain/call/field.ts";
import { clearedSchema, contextListQuery, contextQuery, contextSchema } from "../../domain/chat/session.ts";
import { defineRoute } from "../route.ts";

export const sessionRoutes = [
  defineRoute("GET /api/contexts", {
    access: "read:sessions",
    operation: "session.list",
    summary: "List the workers with a context of a conversation",
    query: contextListQuery,
    response: z.array(contextSchema),
    handle: ({ api, call, query }) => api.session.list(call, query.session_key, query),
  }),
  defineRoute("DELETE /api/contexts", {
    access: "write:sessions",
    operation: "session.clear",
    summary: "Cancel all active work of a conversation and delete its contexts",
    query: contextQuery,
    response: clearedSchema,
    handle: ({ api, call, query }) => api.session.clear(call, query.session_key),
  }),
  defineRoute("DELETE /api/contexts/:worker_id", {
    access: "write:sessions",
    operation: "session.clear_worker",
    summary: "Delete the context of one worker in a conversation",
    params: { worker_id: id },
    query: contextQuery,
    response: clearedSchema,
    handle: ({ api, call, params, query }) =>
      api.session.clearWorker(call, query.session_key, params.worker_id),
  }),
] as const;
