import type { BudgetFilter, BudgetUpdate, StoredBudget } from "../../domain/workers/budget.ts";
import { storedBudgetSchema } from "../../domain/workers/budget.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import type { Listing } from "../../domain/call/page.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { buildSet, type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { buildWhere, type Filters, matchAny, matchReference } from "../db/filter.ts";
import { list, parseNullableJson } from "../db/list.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";

const BUDGET_JSON = buildJsonSql("budget", storedBudgetSchema, { limit: 'budget."limit"' });

const FILTERS: Filters<BudgetFilter> = {
  ref: matchReference("budget", { column: "name_key", key: normalizeName }),
  target: matchAny("budget.target"),
};

export function listBudgets(db: Database, filter: BudgetFilter): Promise<Listing<StoredBudget>> {
  return list(db, { table: "budget", json: BUDGET_JSON, where: buildWhere(filter, FILTERS) }, filter);
}

export async function findBudget(db: Database, id: string): Promise<StoredBudget | null> {
  return parseNullableJson(await readJson(db, BUDGET_JSON, "from budget where id = ?", [id]));
}

// Wakes the stage that checks the use, and the dispatcher, because blocked tasks may run now.
function addWakeups([change, ...guards]: Statement[]): Statement[] {
  if (change === undefined) return [];
  return [
    { ...change, wakeup: WAKEUP.budget },
    ...guards.map((statement) => ({ ...statement, wakeup: WAKEUP.dispatcher })),
  ];
}

/** Stores a new budget, guarded by fewer than `max`. A duplicate name fails the batch. */
export function insertBudget(budget: StoredBudget, max: number): Statement[] {
  const { limit, ...rest } = budget;
  const row = { ...rest, name_key: normalizeName(budget.name), '"limit"': limit };
  return addWakeups(insertGuarded("budget", row, { sql: "(select count(*) from budget) < ?", args: [max] }));
}

type BudgetChange = Pick<BudgetUpdate, "name" | "target" | "unit" | "limit" | "period" | "soft" | "action">;

/** Changes the given fields, guarded by the budget's existence. A new limit allows new notices. */
export function updateBudget(id: string, change: BudgetChange, now: number): Statement[] {
  const { name, target, unit, limit, period, soft, action } = change;
  const name_key = name === undefined ? undefined : normalizeName(name);
  const isOther = [target, unit, limit, period, soft].some((value) => value !== undefined);
  const notified = isOther ? { soft_notified_at: null, hard_notified_at: null } : {};
  const columns = { name, name_key, target, unit, '"limit"': limit, period, soft, action, ...notified };
  const { sql, args } = buildSet({ ...columns, updated_at: now });
  return addWakeups(guard(`update budget set ${sql} where id = ?`, [...args, id]));
}

/** Suspends a budget until a time, or resumes it with null. Guarded by its existence. */
export function suspendBudget(id: string, until: number | null, now: number): Statement[] {
  const sql = "update budget set lifted_until = ?, updated_at = ? where id = ?";
  return addWakeups(guard(sql, [until, now, id]));
}

/** Deletes a budget, guarded by its existence. The ledger keeps its use. */
export function deleteBudget(id: string): Statement[] {
  return addWakeups(guard("delete from budget where id = ?", [id]));
}

/** Marks a budget's soft or hard limit as reported, guarded by no report since `before` (once per period). */
export function markLimitReported(
  id: string,
  state: "soft" | "hard",
  before: number,
  now: number,
): Statement[] {
  const column = `${state}_notified_at`;
  return guard(
    `update budget set ${column} = ? where id = ? and (${column} is null or ${column} <= ?)`,
    [now, id, before],
  );
}
