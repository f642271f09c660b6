import { z } from "zod";
import { gateSchema, verifySchema } from "./command.ts";
import {
  flag,
  line,
  NAME_MAX_BYTES,
  parseIntegerOr,
  parseList,
  refFilter,
  sessionKey,
  text,
  textFilter,
  time,
  VISIBLE_RULE,
} from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { OVERLAPS, TASK_STATUSES, TASK_TYPE_RULES, type TaskType } from "../call/vocabulary.ts";

const PAUSE_AFTER_FAILURES_MAX = 1_000;
const SCHEDULE_RUNS_MAX = 1_000_000_000;

const overlap = z.enum(OVERLAPS, { error: `must be one of ${OVERLAPS.join(", ")}` }).meta({
  description:
    "when the schedule falls due while it still runs: skip this time, queue one run, or replace the current run",
});
const pause_after_failures = z.int().min(0).max(PAUSE_AFTER_FAILURES_MAX).meta({
  description: "consecutive failures that pause the schedule; 0: never",
});
const until = time.nullable().meta({ description: "no run starts after this time, Unix ms" });
const max_runs = z.int().min(1).max(SCHEDULE_RUNS_MAX).nullable().meta({
  description: "number of runs after which the schedule is completed",
});

/** Options of a schedule in responses (contract 15). */
export const optionFields = {
  name: z.string(),
  paused: z.boolean(),
  gate: gateSchema.nullable(),
  verify: verifySchema.nullable().meta({ description: "null: the worker's check" }),
  overlap,
  pause_after_failures,
  deliver_to: z.string().meta({
    description: "session key of the conversation that gets the results; '' for its own",
  }),
  until,
  max_runs,
};

/** The same options as they appear in requests. */
export const optionInputs = {
  ...optionFields,
  name: text(NAME_MAX_BYTES).refine((name) => name === "" || line(NAME_MAX_BYTES).safeParse(name).success, {
    error: "must be one line of text",
  }).refine(VISIBLE_RULE[0], { error: VISIBLE_RULE[1] }),
  deliver_to: z.union([z.literal(""), sessionKey], { error: "must be a session key, such as local:<id>" }),
};

export type ScheduleOptions = { [K in keyof typeof optionFields]: z.output<(typeof optionFields)[K]> };

export function buildDefaultOptions(type: TaskType): ScheduleOptions {
  return {
    name: "",
    paused: false,
    gate: null,
    verify: null,
    overlap: "skip",
    pause_after_failures: TASK_TYPE_RULES[type].pauseAfterFailures,
    deliver_to: "",
    until: null,
    max_runs: null,
  };
}

export const scheduleListQuery = {
  ref: refFilter.optional(),
  status: parseList(z.enum(TASK_STATUSES)).optional(),
  worker_id: parseList(z.string().min(1)).optional(),
  text: textFilter.optional(),
  paused: flag.optional(),
  failing: flag.optional().meta({ type: "boolean", description: "whether its latest runs failed" }),
  ...buildPageQuery(),
};
export type ScheduleFilter = z.output<z.ZodObject<typeof scheduleListQuery>>;

const PREVIEW_MAX = 50;

export const previewQuery = {
  cron: text(1_000),
  time_zone: text(100).default("").meta({ default: "", description: "'' for the service's time zone" }),
  count: parseIntegerOr(10, [1, PREVIEW_MAX]),
};
export type PreviewQuery = z.output<z.ZodObject<typeof previewQuery>>;

export const previewSchema = z.strictObject({
  at: time,
  local: z.string().meta({ description: "local time, such as 2026-03-29T03:00+02:00" }),
  note: z.string().meta({ description: "effect of daylight saving time, or ''" }),
}).meta({ id: "PreviewedTime" });
export type PreviewedTime = z.output<typeof previewSchema>;
