import { z } from "zod";
import { usageSchema } from "../work/execution.ts";
import { queryTime, time, whole } from "../call/field.ts";
import { USAGE_GROUPS } from "../call/vocabulary.ts";

const counted = {
  executions: z.int(),
  failed: z.int(),
  minutes: z.number().meta({ description: "how long they ran, added up" }),
  ...usageSchema.shape,
};

/** What runs used, of one worker, department, engine, day or conversation (contract 17). */
export const usageRowSchema = z.strictObject({
  key: z.string().meta({
    description: "an id, a name of an engine, a day such as 2026-01-31, or a session key",
  }),
  name: z.string().meta({ description: "for people; empty where there is none" }),
  ...counted,
}).meta({ id: "UsageRow" });

export type UsageRow = z.output<typeof usageRowSchema>;

const DAY_MS = 86_400_000;

/** How many days back the usage is shown at most. */
export const USAGE_DAYS_MAX = 400;

/** Query of GET /api/usage. */
export const usageQuery = {
  by: z.enum(USAGE_GROUPS).default("worker"),
  since: queryTime.optional().meta({ description: "Unix ms; 30 days ago when it is left out" }),
};

/** How far back usage goes by default. */
export const USAGE_SINCE_DEFAULT_MS = 30 * DAY_MS;

/** A span of time in a series; the first begins at or before `since`. */
export const seriesPointSchema = z.strictObject({
  at: time.meta({ description: "the start of the span" }),
  ...counted,
  waited_ms: z.int().nullable().meta({
    description: "how long runs that began then had waited, on average; null: none began",
  }),
  waited_longest_ms: z.int().nullable(),
}).meta({ id: "SeriesPoint" });

export type SeriesPoint = z.output<typeof seriesPointSchema>;

/** What runs that ended in a quarter of an hour used. */
export type UsedInQuarter = Omit<SeriesPoint, "waited_ms" | "waited_longest_ms">;

/** How long runs that began in a quarter of an hour had waited: added up, and the longest. */
export type WaitedInQuarter = { at: number; runs: number; ms: number; longest_ms: number };

const QUARTER_MS = 900_000;

/** Most points of a series. */
export const SERIES_POINTS_MAX = 1_000;

/** Query of GET /api/system/series. Use is kept by quarters of an hour, so a step is a number of them. */
export const seriesQuery = {
  since: queryTime.optional().meta({ description: "Unix ms; 24 hours ago when it is left out" }),
  step: whole(QUARTER_MS, 31 * DAY_MS).default(3_600_000).meta({
    type: "integer",
    minimum: QUARTER_MS,
    maximum: 31 * DAY_MS,
    default: 3_600_000,
    description: "ms; a multiple of 900000",
  }),
};

/** How far back a series goes by default. */
export const SERIES_SINCE_DEFAULT_MS = DAY_MS;
