import { z } from "zod";
import { engineSchema } from "../../domain/workers/engine.ts";
import { defineRoute } from "../route.ts";

export const engineRoutes = [
  defineRoute("GET /api/engines", {
    access: "read:engines",
    operation: "engine.list",
    summary: "List all engines with their availability, by name",
    response: z.array(engineSchema),
    handle: ({ api }) => api.engine.list(),
  }),
  defineRoute("GET /api/engines/:name", {
    access: "read:engines",
    operation: "engine.get",
    summary: "Get an engine",
    params: { name: z.string().min(1).max(64) },
    response: engineSchema,
    handle: ({ api, params }) => api.engine.get(params.name),
  }),
  defineRoute("POST /api/engines/:name/lift", {
    access: "write:engines",
    operation: "engine.lift",
    summary: "End the cooldown of an engine that waits for its provider",
    params: { name: z.string().min(1).max(64) },
    response: engineSchema,
    handle: ({ api, call, params }) => api.engine.lift(call, params.name),
  }),
] as const;
