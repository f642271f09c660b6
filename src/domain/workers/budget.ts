import { z } from "zod";
import {
  id,
  ignoreFields,
  line,
  nameText,
  parseTextList,
  refFilter,
  sessionKey,
  time,
} from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { formatResume } from "../work/block.ts";
import {
  BUDGET_ACTIONS,
  BUDGET_PERIODS,
  BUDGET_STATES,
  BUDGET_UNITS,
  type BudgetPeriod,
  type BudgetState,
  type BudgetUnit,
} from "../call/vocabulary.ts";

/** Every run is compared with each of its budgets, so their number is limited. */
export const BUDGETS_MAX = 5_000;

const LIFT_MAX_MS = 31 * 86_400_000;

const TARGET = /^(global|department:.+|worker:.+|session:.+|engine:.+)$/s;

const target = line(1_100)
  .refine((value) => TARGET.test(value), {
    error: "must be global, department:<id|name>, worker:<id|name>, session:<key> or engine:<name>",
  })
  .refine((value) => !value.startsWith("session:") || sessionKey.safeParse(value.slice(8)).success, {
    error: "must name a conversation by its session key, such as session:local:01a1fd23-...",
  });

const settings = {
  name: nameText(),
  target,
  unit: z.enum(BUDGET_UNITS),
  limit: z.number().min(0).max(1_000_000_000).meta({
    description: "runs, tokens, minutes or US dollars; 0 blocks every run",
  }),
  period: z.enum(BUDGET_PERIODS).meta({ description: "a rolling time, this calendar month, or all time" }),
  soft: z.int().min(1).max(100).meta({ description: "percentage of the limit that triggers one notice" }),
  action: z.enum(BUDGET_ACTIONS).meta({ description: "hold: block new runs. stop: also end open runs" }),
};

/** The stored fields of a budget. */
export const storedBudgetSchema = z.strictObject({
  id,
  ...settings,
  name: z.string(),
  target: z.string(),
  lifted_until: time.nullable().meta({ description: "until then the budget is suspended" }),
  created_at: time,
  updated_at: time,
});
export type StoredBudget = z.output<typeof storedBudgetSchema>;

const amount = z.number().min(0).meta({
  description: "in the unit of the budget; US dollars are an estimate",
});

export const budgetSchema = storedBudgetSchema.extend({
  used: amount,
  reserved: amount.meta({ description: "further expected usage of open runs" }),
  state: z.enum(BUDGET_STATES).meta({ description: "unmeasured: the runs report no usage" }),
  resets_at: time.nullable().meta({
    description: "when the budget allows runs again if nothing changes; for a month its end",
  }),
  forecast: amount.nullable().meta({
    description:
      "expected usage of the whole period at the pace of the last 7 days; null: of all time, or not measured",
  }),
  runs_out_at: time.nullable().meta({
    description: "when the usage reaches the limit at that pace; null: not in this period",
  }),
}).meta({ id: "Budget" });
export type Budget = z.output<typeof budgetSchema>;

export const budgetCreateSchema = z.strictObject({
  ...settings,
  target: target.default("global"),
  soft: settings.soft.default(80),
  action: settings.action.default("hold"),
}).meta({
  id: "BudgetCreate",
  examples: [{ name: "Month", target: "global", unit: "usd", limit: 50, period: "month" }],
});
export type BudgetCreate = z.output<typeof budgetCreateSchema>;

/** A field that the request omits stays unchanged. PUT ignores read-only fields (contract 1.2). */
export const budgetUpdateSchema = z.strictObject({
  ...settings,
  ...ignoreFields(
    ...["id", "lifted_until", "used", "reserved", "state", "resets_at", "forecast", "runs_out_at"] as const,
    ...["created_at", "updated_at"] as const,
  ),
}).partial().meta({ id: "BudgetUpdate", examples: [{ limit: 100 }] });
export type BudgetUpdate = z.output<typeof budgetUpdateSchema>;

export const budgetLiftSchema = z.strictObject({
  for_ms: z.int().min(0).max(LIFT_MAX_MS).meta({ description: "0 ends the suspension" }),
}).meta({ id: "BudgetLift", examples: [{ for_ms: 3_600_000 }] });
export type BudgetLift = z.output<typeof budgetLiftSchema>;

export const budgetListQuery = {
  ref: refFilter.optional(),
  target: parseTextList(line(1_100)).optional(),
  ...buildPageQuery(),
};
export type BudgetFilter = z.output<z.ZodObject<typeof budgetListQuery>>;

/** Usage in whole numbers, which add up exactly. */
export interface Amounts {
  runs: number;
  tokens: number;
  ms: number;
  nano_usd: number;
}

export const NOTHING_USED: Amounts = { runs: 0, tokens: 0, ms: 0, nano_usd: 0 };

const COUNTED: Record<BudgetUnit, { field: keyof Amounts; one: number }> = {
  runs: { field: "runs", one: 1 },
  tokens: { field: "tokens", one: 1 },
  minutes: { field: "ms", one: 60_000 },
  usd: { field: "nano_usd", one: 1e9 },
};

export function getAmount(amounts: Amounts, unit: BudgetUnit): number {
  return amounts[COUNTED[unit].field];
}

/** Returns the limit as a whole number of the smallest unit: nano-dollars, ms, tokens or runs. */
export function getCountedLimit({ limit, unit }: Pick<StoredBudget, "limit" | "unit">): number {
  return Math.round(limit * COUNTED[unit].one);
}

/** Converts a counted number into the unit of the budget. */
export function convertToUnit(counted: number, unit: BudgetUnit): number {
  return counted / COUNTED[unit].one;
}

const ROLLING: Partial<Record<BudgetPeriod, number>> = {
  "5h": 5 * 3_600_000,
  "24h": 86_400_000,
  "7d": 7 * 86_400_000,
};

/** Start and end of a calendar month in a time zone. */
export interface Month {
  start: number;
  end: number;
}

/** Returns the time up to which ended usage no longer counts (contract 14). */
export function findCountStart(period: BudgetPeriod, now: number, month: Month): number {
  if (period === "total") return -1;
  return period === "month" ? month.start - 1 : now - (ROLLING[period] ?? 0);
}

/** Returns when usage that ended at `at` stops counting, or null for never. */
export function findCountEnd(period: BudgetPeriod, at: number, month: Month): number | null {
  if (period === "total") return null;
  return period === "month" ? month.end : at + (ROLLING[period] ?? 0);
}

/** State of a budget at a moment, in counted numbers. */
export interface BudgetUsage {
  /** Usage of ended runs in the period, and of open runs so far. */
  used: number;
  /** Further expected usage of open runs. */
  reserved: number;
  /** The runs report no usage, so the budget can block nothing. */
  unmeasured: boolean;
}

/** Expected and current usage of an open run. */
export interface OpenUse {
  /** All targets that the run counts for. */
  targets: readonly string[];
  expected: Amounts;
  counted: Amounts;
}

/** Sums the usage of a budget. `settled` is the usage of ended runs in its period. */
export function sumBudgetUsage(
  { target, unit, settled }: Pick<StoredBudget, "target" | "unit"> & { settled: number },
  open: readonly OpenUse[],
  measured: boolean,
): BudgetUsage {
  let used = settled;
  let reserved = 0;
  for (const { targets, expected, counted } of open) {
    if (!targets.includes(target)) continue;
    const now = getAmount(counted, unit);
    used += now;
    reserved += Math.max(0, getAmount(expected, unit) - now);
  }
  return { used, reserved, unmeasured: !measured };
}

/** Returns `hard` when used and reserved amounts reach the limit, `soft` from the configured percentage on (contract 14). */
export function classifyBudget(
  budget: Pick<StoredBudget, "limit" | "unit" | "soft">,
  { used, reserved, unmeasured }: BudgetUsage,
): BudgetState {
  if (unmeasured) return "unmeasured";
  const limit = getCountedLimit(budget);
  if (used + reserved >= limit) return "hard";
  return (used + reserved) * 100 >= limit * budget.soft ? "soft" : "ok";
}

/**
 * Returns whether one more run with the expected usage may start. Without any usage or reservation one run always starts,
 * unless the limit is 0 (contract 14, decision 0015).
 */
export function mayStart(
  budget: Pick<StoredBudget, "limit" | "unit">,
  { used, reserved, unmeasured }: BudgetUsage,
  expected: number,
): boolean {
  const limit = getCountedLimit(budget);
  if (unmeasured) return true;
  if (used + reserved >= limit) return false;
  return used + reserved === 0 || used + reserved + expected <= limit;
}

/**
 * Returns whether open runs must end because usage exceeds the limit. Started runs are within a limit of runs (contract 14).
 */
export function mustStop(
  budget: Pick<StoredBudget, "limit" | "unit">,
  { used, reserved, unmeasured }: BudgetUsage,
): boolean {
  if (unmeasured) return false;
  const limit = getCountedLimit(budget);
  return budget.unit === "runs" ? used + reserved > limit : used >= limit;
}

/** Ended usage of a target in the last days. */
interface RecentUse {
  counted: number;
  /** When the first run of the target ended, or null. */
  firstAt: number | null;
}

const DAY_MS = 86_400_000;
const PACE_SPAN_MS = 7 * DAY_MS;

/** Returns the expected usage of the whole period, and when it reaches the limit, at the pace of the last 7 days. */
export function forecastUsage(
  budget: Pick<StoredBudget, "limit" | "unit" | "period">,
  { used, reserved, unmeasured }: BudgetUsage,
  { counted, firstAt }: RecentUse,
  { now, month }: { now: number; month: Month },
): { forecast: number | null; runsOutAt: number | null } {
  if (unmeasured) return { forecast: null, runsOutAt: null };
  // A target with less than a day of history would get the pace of its first minutes.
  const spanMs = Math.min(PACE_SPAN_MS, Math.max(DAY_MS, now - (firstAt ?? now)));
  const perMs = counted / spanMs;
  const rolling = ROLLING[budget.period];
  // Usage leaves a rolling period while new usage enters it.
  if (rolling !== undefined) return { forecast: Math.round(perMs * rolling), runsOutAt: null };
  const left = getCountedLimit(budget) - used - reserved;
  const out = perMs > 0 && left > 0 ? Math.round(now + left / perMs) : null;
  if (budget.period === "total") return { forecast: null, runsOutAt: out };
  return {
    forecast: Math.round(used + perMs * (month.end - now)),
    runsOutAt: out !== null && out < month.end ? out : null,
  };
}

/** Returns whether the budget is suspended at `now`. */
export function isLifted({ lifted_until }: Pick<StoredBudget, "lifted_until">, now: number): boolean {
  return lifted_until !== null && lifted_until > now;
}

/** Formats an amount: 12 runs, 1.5 US dollars. */
export function formatAmount(counted: number, unit: BudgetUnit): string {
  const number = Number(convertToUnit(counted, unit).toFixed(unit === "usd" ? 4 : 1));
  const words = unit === "usd" ? "US dollars" : unit;
  return `${number} ${number === 1 ? words.replace(/s$/, "") : words}`;
}

/** Formats why a budget blocks a task, for the task's `reason`. */
export function formatBudgetReason(
  budget: StoredBudget,
  { used, reserved }: BudgetUsage,
  until: number | null,
): string {
  const of = formatAmount(getCountedLimit(budget), budget.unit);
  const sum = formatAmount(used + reserved, budget.unit).replace(/ .*/, "");
  return `the budget ${JSON.stringify(budget.name)} is used up: ${sum} of ${of} (${budget.period})${
    formatResume(until)
  }`;
}

/** Returns the median, or 0 for no values. */
export function computeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return Math.round((low + high) / 2);
}
