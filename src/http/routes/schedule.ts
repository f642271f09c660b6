import { z } from "zod";
import { previewQuery, previewSchema, scheduleListQuery } from "../../domain/work/schedule.ts";
import { taskSchema } from "../../domain/work/task.ts";
import { defineRoute } from "../route.ts";

export const scheduleRoutes = [
  defineRoute("GET /api/schedules", {
    access: "read:tasks",
    operation: "schedule.list",
    summary: "List schedules and countdowns, soonest first",
    query: scheduleListQuery,
    response: z.array(taskSchema),
    handle: ({ api, call, query }) => api.schedule.list(call, query),
  }),
  defineRoute("GET /api/schedules/preview", {
    access: "read:tasks",
    operation: "schedule.preview",
    summary: "Preview the next times of a cron expression, including daylight-saving changes",
    query: previewQuery,
    response: z.array(previewSchema),
    paged: false,
    handle: ({ api, query }) => api.schedule.preview(query),
  }),
] as const;
