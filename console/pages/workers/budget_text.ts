import type { Schemas } from "../../live/api.ts";
import { workerName } from "../../live/workers.ts";
import { costText, countText } from "../../parts/format.ts";
import { flat, useDepartments } from "./department_tree.ts";

type Budget = Schemas["Budget"];

/** An amount in the unit of a budget: `12 runs`, `$1.50`. */
export function amountWords(amount: number, unit: Budget["unit"]): string {
  if (unit === "usd") return costText(amount);
  return `${numberOf(amount, unit)} ${amount === 1 ? unit.slice(0, -1) : unit}`;
}

function numberOf(amount: number, unit: Budget["unit"]): string {
  return countText(unit === "minutes" ? Math.round(amount * 10) / 10 : amount);
}

/** How much of a budget is used: `12 of 200 runs`, `$1.50 of $20.00`. */
export function usedWords({ used, limit, unit }: Pick<Budget, "used" | "limit" | "unit">): string {
  const all = amountWords(limit, unit);
  return `${unit === "usd" ? costText(used) : numberOf(used, unit)} of ${all}`;
}

const PERIODS: Record<Budget["period"], string> = {
  "5h": "in 5 hours",
  "24h": "in 24 hours",
  "7d": "in 7 days",
  month: "in a month",
  total: "in all",
};

/** Over which time a budget counts. */
export function periodWords(period: Budget["period"]): string {
  return PERIODS[period];
}

/** Every period with its words, for a choice. */
export const PERIOD_CHOICES = Object.entries(PERIODS) as [Budget["period"], string][];

/** The names of departments by their ids. */
export function useDepartmentNames(): Map<string, string> {
  return new Map(flat(useDepartments().data ?? []).map(({ id, name }) => [id, name]));
}

/** What a budget counts for. */
export function targetWords(target: string, departments: ReadonlyMap<string, string>): string {
  const [kind = ""] = target.split(":", 1);
  const key = target.slice(kind.length + 1);
  if (kind === "worker") return workerName(key) || "a deleted worker";
  if (kind === "department") return `department ${departments.get(key) ?? key}`;
  if (kind === "session") return "one conversation";
  return kind === "engine" ? `engine ${key}` : "everything";
}
