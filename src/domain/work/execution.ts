import { z } from "zod";
import { verifiedSchema } from "./command.ts";
import {
  id,
  parseFlagOr,
  parseInteger,
  parseList,
  parseTextList,
  queryTime,
  refFilter,
  textFilter,
  time,
  truncated,
} from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { launchSchema } from "./launch.ts";
import { EXECUTION_STATUSES, FAILURES } from "../call/vocabulary.ts";

export const usageSchema = z.strictObject({
  input_tokens: z.int().nullable(),
  output_tokens: z.int().nullable(),
  cost_usd: z.number().nullable(),
}).meta({ id: "Usage" });
export type Usage = z.output<typeof usageSchema>;

export const USAGE_UNKNOWN: Usage = { input_tokens: null, output_tokens: null, cost_usd: null };

/** Limits of one run's usage, so that sums of many runs stay exact integers (contract 14). */
const TOKENS_MAX = 1_000_000_000_000;
const COST_MAX_USD = 10_000;

/**
 * Clamps reported usage: figures are never negative, fractional or unbounded, whatever an engine or a runner reports
 * (contract 14).
 */
export function clampUsage({ input_tokens, output_tokens, cost_usd }: Usage): Usage {
  const tokens = (value: number | null) => clamp(value === null ? null : Math.round(value), TOKENS_MAX);
  return {
    input_tokens: tokens(input_tokens),
    output_tokens: tokens(output_tokens),
    cost_usd: clamp(cost_usd, COST_MAX_USD),
  };
}

const MILLION = 1_000_000;

/** Adds the estimated cost by `prices`, in USD per million tokens. Without prices the engine's figure stays (contract 14). */
export function addCost(usage: Usage, prices: { input: number; output: number } | undefined): Usage {
  if (prices === undefined || usage.input_tokens === null && usage.output_tokens === null) return usage;
  const cost = (usage.input_tokens ?? 0) * prices.input + (usage.output_tokens ?? 0) * prices.output;
  return clampUsage({ ...usage, cost_usd: Number((cost / MILLION).toFixed(9)) });
}

function clamp(value: number | null, most: number): number | null {
  return value === null || !Number.isFinite(value) ? null : Math.min(Math.max(value, 0), most);
}

/** Adds the usage of two parts of a run. A figure that both lack stays unknown. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum = (name: keyof Usage) =>
    one[name] === null && other[name] === null ? null : (one[name] ?? 0) + (other[name] ?? 0);
  return {
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cost_usd: sum("cost_usd"),
  };
}

export const executionSchema = z.strictObject({
  id,
  worker_id: id,
  worker_name: z.string(),
  task_id: id,
  message_id: z.string(),
  session_key: z.string(),
  session_id: z.string(),
  engine: z.string().meta({ description: "the engine that did the run" }),
  fallback_from: z.string().meta({ description: "the engine of its worker, if another one replaced it" }),
  instruction: z.string(),
  status: z.enum(EXECUTION_STATUSES),
  result: z.string().meta({ description: "the final text" }),
  error: z.string(),
  failure: z.enum(["", ...FAILURES]),
  exit_code: z.int().nullable(),
  attempt: z.int(),
  run_no: z.int().meta({ description: "number of this run in its task, as in the task's run_no" }),
  verify: verifiedSchema,
  usage: usageSchema,
  tree_id: z.string().meta({ description: "its worktree; empty without a repository" }),
  branch: z.string().meta({ description: "its branch; empty without a repository and before its end" }),
  base_commit: z.string().meta({ description: "the commit of its branch before the run" }),
  head_commit: z.string().meta({ description: "the commit of its branch after the run" }),
  files_changed: z.int().nullable(),
  insertions: z.int().nullable(),
  deletions: z.int().nullable(),
  launch: launchSchema.nullable().meta({ description: "the launch that started its runner" }),
  created_at: time,
  started_at: time.nullable(),
  completed_at: time.nullable(),
  truncated,
}).meta({ id: "Execution" });
export type Execution = z.output<typeof executionSchema>;

export const executionListQuery = {
  worker_id: parseList(z.string().min(1)).optional(),
  ref: refFilter.optional(),
  session_id: parseTextList().optional(),
  status: parseList(z.enum(EXECUTION_STATUSES)).optional(),
  failure: parseList(z.enum(FAILURES)).optional(),
  engine: parseList(z.string().min(1)).optional(),
  text: textFilter.optional(),
  started_from: queryTime.optional(),
  started_to: queryTime.optional(),
  completed_from: queryTime.optional(),
  completed_to: queryTime.optional(),
  ...buildPageQuery(),
};
export type ExecutionFilter = z.output<z.ZodObject<typeof executionListQuery>>;

export const logQuery = {
  follow: parseFlagOr(false, "stream until the end"),
  tail: parseInteger(0, 1_000_000).optional().meta({ description: "only the last lines" }),
  raw: parseFlagOr(
    false,
    "the engine's raw events, one JSON object per line; empty for engines without events",
  ),
};
