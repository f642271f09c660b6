import { z } from "zod";
import { clearSession, clearWorkerContext, listContexts } from "../../api/session.ts";
import { id } from "../../domain/field.ts";
import { clearedSchema, contextListQuery, contextQuery, contextSchema } from "../../domain/session.ts";
import { route } from "../route.ts";

export const sessionRoutes = [
  route({
    method: "GET",
    path: "/api/contexts",
    access: "read:sessions",
    operation: "session.list",
    summary: "List the workers that remember something of a conversation",
    query: contextListQuery,
    status: 200,
    response: z.array(contextSchema),
    paged: true,
    handle: async ({ service, call, query }) => ({
      listing: await listContexts(service, call, query.session_key, query),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/contexts",
    access: "write:sessions",
    operation: "session.clear",
    summary: "Cancel all active work of a conversation and forget its contexts",
    query: contextQuery,
    status: 200,
    response: clearedSchema,
    handle: async ({ service, call, query }) => ({
      value: await clearSession(service, call, query.session_key),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/contexts/:worker_id",
    access: "write:sessions",
    operation: "session.clear_worker",
    summary: "Let one worker forget a conversation",
    params: { worker_id: id },
    query: contextQuery,
    status: 200,
    response: clearedSchema,
    handle: async ({ service, call, params, query }) => ({
      value: await clearWorkerContext(service, call, query.session_key, params.worker_id),
    }),
  }),
] as const;
