import { z } from "zod";
import {
  activityQuery,
  activitySchema,
  seriesPointSchema,
  seriesQuery,
  usageQuery,
  usageRowSchema,
} from "../../domain/workers/usage.ts";
import { defineRoute } from "../route.ts";

export const usageRoutes = [
  defineRoute("GET /api/usage", {
    access: "read:executions",
    operation: "usage.list",
    summary: "Get usage of the last days or since a time, by worker, department, engine, day or conversation",
    description:
      "Most executions first, days newest first. Days are calendar days in the service's time zone. Usage by engine and by conversation is limited to stored executions.",
    query: usageQuery,
    response: z.array(usageRowSchema),
    handle: ({ api, call, query }) => api.usage.list(call, query),
  }),
  defineRoute("GET /api/usage/workers", {
    access: "read:executions",
    operation: "usage.workers",
    summary: "Get the last run, the waiting tasks and the usage per day of every worker",
    description:
      "Days are calendar days in the service's time zone. A run counts on the day on which it ended.",
    query: activityQuery,
    response: activitySchema,
    handle: ({ api, query }) => api.usage.activity(query),
  }),
  defineRoute("GET /api/system/series", {
    access: "read:system",
    operation: "system.series",
    summary: "Get usage over time in equal intervals, oldest first",
    query: seriesQuery,
    response: z.array(seriesPointSchema),
    handle: ({ api, query }) => api.usage.series(query),
  }),
] as const;
