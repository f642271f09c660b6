import { z } from "zod";
import { usageSchema } from "../work/execution.ts";
import { id, parseIntegerOr, queryTime, time } from "../call/field.ts";
import { EXECUTION_STATUSES, USAGE_GROUPS } from "../call/vocabulary.ts";

const counted = {
  executions: z.int(),
  failed: z.int(),
  minutes: z.number().meta({ description: "total run time in minutes" }),
  ...usageSchema.shape,
};

/** Usage of one worker, department, engine, day or conversation (contract 17). */
export const usageRowSchema = z.strictObject({
  key: z.string().meta({
    description: "an id, a name of an engine, a day such as 2026-01-31, or a session key",
  }),
  name: z.string().meta({ description: "display name, or empty" }),
  ...counted,
}).meta({ id: "UsageRow" });
export type UsageRow = z.output<typeof usageRowSchema>;

const DAY_MS = 86_400_000;

export const USAGE_DAYS_MAX = 400;

const USAGE_DAYS_DEFAULT = 30;

export const usageQuery = {
  by: z.enum(USAGE_GROUPS).default("worker"),
  since: queryTime.optional().meta({ description: "Unix ms; takes precedence over days" }),
  days: parseIntegerOr(USAGE_DAYS_DEFAULT, [1, USAGE_DAYS_MAX], "calendar days, today included"),
};

/** A time span in a series. The first one starts at or before `since`. */
export const seriesPointSchema = z.strictObject({
  at: time.meta({ description: "the start of the span" }),
  ...counted,
  waited_ms: z.int().nullable().meta({
    description: "average wait of runs that started in the span; null: none started",
  }),
  waited_longest_ms: z.int().nullable(),
}).meta({ id: "SeriesPoint" });
export type SeriesPoint = z.output<typeof seriesPointSchema>;

/** Usage of the runs that ended in one slot of 15 minutes. */
export type QuarterUsage = Omit<SeriesPoint, "waited_ms" | "waited_longest_ms">;

/** Waiting times of runs that started in a quarter of an hour: sum and maximum. */
export type QuarterWaits = { at: number; runs: number; ms: number; longest_ms: number };

const QUARTER_MS = 900_000;

export const SERIES_POINTS_MAX = 1_000;

/** Usage is stored by quarters of an hour, so a step is a multiple of them. */
export const seriesQuery = {
  since: queryTime.optional().meta({ description: "Unix ms; default: 24 hours ago" }),
  step: parseIntegerOr(3_600_000, [QUARTER_MS, 31 * DAY_MS], "ms; a multiple of 900000"),
};

export const SERIES_SINCE_DEFAULT_MS = DAY_MS;

const ACTIVITY_DAYS_MAX = 31;

export const activityQuery = {
  days: parseIntegerOr(7, [1, ACTIVITY_DAYS_MAX], "calendar days, today included"),
};

const activityDaySchema = z.strictObject({ day: z.string(), ...counted });

/** A worker's current work, and its usage on the last days. */
const workerActivitySchema = z.strictObject({
  worker_id: id,
  worker_name: z.string(),
  deleted: z.boolean(),
  pending: z.int().meta({ description: "waiting tasks" }),
  blocked: z.int().meta({ description: "waiting tasks that a budget, limit or missing runner blocks" }),
  last_run: z.strictObject({ id, status: z.enum(EXECUTION_STATUSES), created_at: time }).nullable(),
  days: z.array(activityDaySchema).meta({ description: "the days with runs that ended, oldest first" }),
}).meta({ id: "WorkerActivity" });
export type WorkerActivity = z.output<typeof workerActivitySchema>;

export const activitySchema = z.strictObject({
  days: z.array(z.string()).meta({ description: "all days of the answer, such as 2026-01-31, oldest first" }),
  workers: z.array(workerActivitySchema).meta({
    description: "by name; deleted workers with usage come last",
  }),
}).meta({ id: "Activity" });
export type Activity = z.output<typeof activitySchema>;
