import { z } from "zod";
import { id, line, nameText, refFilter, sessionKey, textsOf, time } from "../call/field.ts";
import { pageQuery } from "../call/page.ts";
import {
  BUDGET_ACTIONS,
  BUDGET_PERIODS,
  BUDGET_STATES,
  BUDGET_UNITS,
  type BudgetPeriod,
  type BudgetState,
  type BudgetUnit,
} from "../call/vocabulary.ts";

/** Most budgets: each run is compared with those that it counts for. */
export const BUDGETS_MAX = 5_000;

/** The longest time that a budget can be lifted for, in ms. */
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
    description: "runs, tokens, minutes or US dollars; 0 lets nothing start",
  }),
  period: z.enum(BUDGET_PERIODS).meta({
    description: "the time before now, this calendar month, or all time",
  }),
  soft: z.int().min(1).max(100).meta({ description: "percent of the limit at which it is said once" }),
  action: z.enum(BUDGET_ACTIONS).meta({
    description: "hold: nothing new starts. stop: what runs is ended, too",
  }),
};

/** What is stored of a budget. */
export const storedBudgetSchema = z.strictObject({
  id,
  ...settings,
  name: z.string(),
  target: z.string(),
  lifted_until: time.nullable().meta({ description: "until then it holds and stops nothing" }),
  created_at: time,
  updated_at: time,
});

export type StoredBudget = z.output<typeof storedBudgetSchema>;

const amount = z.number().min(0).meta({
  description: "in the unit of the budget; US dollars are an estimate",
});

/** A budget as the API shows it (contract 14). */
export const budgetSchema = storedBudgetSchema.extend({
  used: amount,
  reserved: amount.meta({ description: "what open runs are expected to use beyond what they have used" }),
  state: z.enum(BUDGET_STATES).meta({ description: "unmeasured: nobody tells what the runs cost" }),
  resets_at: time.nullable().meta({
    description: "when there is room again by the time alone; for a month its end",
  }),
}).meta({ id: "Budget" });

export type Budget = z.output<typeof budgetSchema>;

/** Body of POST /api/budgets. */
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

/** Body of PUT /api/budgets/:id: an absent field stays unchanged, and what PUT cannot change is ignored (contract 1.2). */
export const budgetUpdateSchema = z.strictObject({
  ...settings,
  id: z.unknown(),
  lifted_until: z.unknown(),
  used: z.unknown(),
  reserved: z.unknown(),
  state: z.unknown(),
  resets_at: z.unknown(),
  created_at: z.unknown(),
  updated_at: z.unknown(),
}).partial().meta({ id: "BudgetUpdate", examples: [{ limit: 100 }] });

export type BudgetUpdate = z.output<typeof budgetUpdateSchema>;

/** Body of POST /api/budgets/:id/lift. */
export const budgetLiftSchema = z.strictObject({
  for_ms: z.int().min(0).max(LIFT_MAX_MS).meta({ description: "0 puts it into force again" }),
}).meta({ id: "BudgetLift", examples: [{ for_ms: 3_600_000 }] });

export type BudgetLift = z.output<typeof budgetLiftSchema>;

/** Query of GET /api/budgets. */
export const budgetListQuery = {
  ref: refFilter.optional(),
  target: textsOf(line(1_100)).optional(),
  ...pageQuery(),
};

export type BudgetFilter = z.output<z.ZodObject<typeof budgetListQuery>>;

/** What is counted of runs, in whole numbers that add up exactly. */
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

/** How much of this unit is counted. */
export function amountOf(amounts: Amounts, unit: BudgetUnit): number {
  return amounts[COUNTED[unit].field];
}

/** The limit as a counted number. */
export function countedLimit({ limit, unit }: Pick<StoredBudget, "limit" | "unit">): number {
  return Math.round(limit * COUNTED[unit].one);
}

/** A counted number in the unit of the budget, as people read it. */
export function inUnit(counted: number, unit: BudgetUnit): number {
  return counted / COUNTED[unit].one;
}

const ROLLING: Partial<Record<BudgetPeriod, number>> = {
  "5h": 5 * 3_600_000,
  "24h": 86_400_000,
  "7d": 7 * 86_400_000,
};

/** The calendar month of `now` in a time zone: its first moment and that of the next. */
export interface Month {
  start: number;
  end: number;
}

/** Use that ended at this time or before does not count any more (contract 14). */
export function countsAfter(period: BudgetPeriod, now: number, month: Month): number {
  if (period === "total") return -1;
  return period === "month" ? month.start - 1 : now - (ROLLING[period] ?? 0);
}

/** When use that ended at `at` stops counting; null: never. */
export function countsUntil(period: BudgetPeriod, at: number, month: Month): number | null {
  if (period === "total") return null;
  return period === "month" ? month.end : at + (ROLLING[period] ?? 0);
}

/** What is known of a budget at a moment, in counted numbers. */
export interface Standing {
  /** What ended runs used in the period, and what open ones have used so far. */
  used: number;
  /** What open runs are expected to use beyond that. */
  reserved: number;
  /** Nobody tells what the runs use: the budget can hold nothing. */
  unmeasured: boolean;
}

/** What an open run is expected to use, and has used so far. */
export interface OpenUse {
  /** Everything that it counts for. */
  targets: readonly string[];
  expected: Amounts;
  counted: Amounts;
}

/** Where a budget stands: `settled` is what ended runs used in its period. */
export function standingOf(
  { target, unit, settled }: Pick<StoredBudget, "target" | "unit"> & { settled: number },
  open: readonly OpenUse[],
  measured: boolean,
): Standing {
  let used = settled;
  let reserved = 0;
  for (const { targets, expected, counted } of open) {
    if (!targets.includes(target)) continue;
    const now = amountOf(counted, unit);
    used += now;
    reserved += Math.max(0, amountOf(expected, unit) - now);
  }
  return { used, reserved, unmeasured: !measured };
}

/** `hard` when the limit is reached by what is used and promised, `soft` from the given percent on (contract 14). */
export function stateOf(
  budget: Pick<StoredBudget, "limit" | "unit" | "soft">,
  { used, reserved, unmeasured }: Standing,
): BudgetState {
  if (unmeasured) return "unmeasured";
  const limit = countedLimit(budget);
  if (used + reserved >= limit) return "hard";
  return (used + reserved) * 100 >= limit * budget.soft ? "soft" : "ok";
}

/**
 * Whether one more run, which is expected to use `expected`, may start: within the limit it may, and where nothing is used
 * and nothing reserved one run always starts, unless the limit is 0 (contract 14, decision 0015).
 */
export function mayStart(
  budget: Pick<StoredBudget, "limit" | "unit">,
  { used, reserved, unmeasured }: Standing,
  expected: number,
): boolean {
  const limit = countedLimit(budget);
  if (unmeasured) return true;
  if (used + reserved >= limit) return false;
  return used + reserved === 0 || used + reserved + expected <= limit;
}

/** Whether open runs have to end: more is used than the limit allows. Started runs are within a limit of runs (contract 14). */
export function mustStop(
  budget: Pick<StoredBudget, "limit" | "unit">,
  { used, reserved, unmeasured }: Standing,
): boolean {
  if (unmeasured) return false;
  const limit = countedLimit(budget);
  return budget.unit === "runs" ? used + reserved > limit : used >= limit;
}

/** Whether the budget is out of force at `now`. */
export function isLifted({ lifted_until }: Pick<StoredBudget, "lifted_until">, now: number): boolean {
  return lifted_until !== null && lifted_until > now;
}

/** An amount in words: 12 runs, 1.5 US dollars. */
export function amountText(counted: number, unit: BudgetUnit): string {
  const number = inUnit(counted, unit);
  const words = unit === "usd" ? "US dollars" : unit;
  return `${Number(number.toFixed(unit === "usd" ? 4 : 1))} ${words}`;
}

/** Why a task is held by a budget, for its `reason`. */
export function budgetReason(
  budget: StoredBudget,
  { used, reserved }: Standing,
  until: number | null,
): string {
  const of = amountText(countedLimit(budget), budget.unit);
  const sum = amountText(used + reserved, budget.unit).replace(/ .*/, "");
  const when = until === null ? "" : `; resumes at ${new Date(until).toISOString()}`;
  return `the budget ${JSON.stringify(budget.name)} is used up: ${sum} of ${of} (${budget.period})${when}`;
}

/** The median; 0 of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return Math.round((low + high) / 2);
}
