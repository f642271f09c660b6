import type { Schemas } from "../../live/api.ts";
import { findWorkerName } from "../../live/workers.ts";
import { formatCost, formatCount } from "../../parts/format.ts";

type Budget = Schemas["Budget"];

export const UNITS: Record<Budget["unit"], string> = {
  usd: "US dollars, estimated",
  runs: "runs",
  tokens: "tokens",
  minutes: "minutes",
};

export const PERIODS: Record<Budget["period"], string> = {
  "5h": "per 5 hours",
  "24h": "per 24 hours",
  "7d": "per 7 days",
  month: "per month",
  total: "in total",
};

export const ACTIONS: Record<Budget["action"], string> = {
  hold: "Block new runs",
  stop: "Block new runs and stop current ones",
};

/** Formats an amount in the unit of a budget: `12 runs`, `$1.50`. */
export function formatAmount(amount: number, unit: Budget["unit"]): string {
  if (unit === "usd") return formatCost(amount);
  return `${formatNumber(amount, unit)} ${amount === 1 ? unit.slice(0, -1) : unit}`;
}

function formatNumber(amount: number, unit: Budget["unit"]): string {
  return formatCount(unit === "minutes" ? Math.round(amount * 10) / 10 : amount);
}

/** Formats the use of a budget: `12 of 200 runs`, `$1.50 of $20.00`. */
export function formatUse({ used, limit, unit }: Budget): string {
  return `${unit === "usd" ? formatCost(used) : formatNumber(used, unit)} of ${formatAmount(limit, unit)}`;
}

/** Returns the used and reserved share of a budget: 1 means all. */
export function calculateShare({ used, reserved, limit }: Budget): number {
  return limit === 0 ? 1 : (used + reserved) / limit;
}

/** Formats the target of a budget. */
export function formatTarget(target: string, departments: ReadonlyMap<string, string>): string {
  const [kind = ""] = target.split(":", 1);
  const key = target.slice(kind.length + 1);
  if (kind === "worker") return findWorkerName(key) || "deleted worker";
  if (kind === "department") return `department ${departments.get(key) ?? key}`;
  if (kind === "session") return "one conversation";
  return kind === "engine" ? `engine ${key}` : "all runs";
}
