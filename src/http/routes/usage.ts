import { z } from "zod";
import { listSeries, listUsage } from "../../api/usage.ts";
import { seriesPointSchema, seriesQuery, usageQuery, usageRowSchema } from "../../domain/usage.ts";
import { route } from "../route.ts";

export const usageRoutes = [
  route({
    method: "GET",
    path: "/api/usage",
    access: "read:executions",
    operation: "usage.list",
    summary: "What runs used since a time, by worker, department, engine, day or conversation",
    description:
      "Most executions first, days newest first. By engine and by conversation it goes as far back as executions are kept.",
    query: usageQuery,
    status: 200,
    response: z.array(usageRowSchema),
    handle: async ({ service, call, query }) => ({
      items: (await listUsage(service, call, query)).map((row) => JSON.stringify(row)),
    }),
  }),
  route({
    method: "GET",
    path: "/api/system/series",
    access: "read:system",
    operation: "system.series",
    summary: "What runs used over time, in equal spans, oldest first",
    query: seriesQuery,
    status: 200,
    response: z.array(seriesPointSchema),
    handle: async ({ service, query }) => ({
      items: (await listSeries(service, query)).map((point) => JSON.stringify(point)),
    }),
  }),
] as const;
