import {
  type Budget,
  type BudgetCreate,
  type BudgetFilter,
  type BudgetLift,
  BUDGETS_MAX,
  type BudgetUpdate,
  classifyBudget,
  convertToUnit,
  forecastUsage,
  getCountedLimit,
  type OpenUse,
  type StoredBudget,
  sumBudgetUsage,
} from "../../domain/workers/budget.ts";
import { conflict, invalid, notFound, type ServiceError } from "../../domain/call/error.ts";
import { formatJson, parseJson } from "../../domain/call/json.ts";
import { Months } from "../../domain/workers/month.ts";
import type { EventKind } from "../../domain/call/vocabulary.ts";
import { createId } from "../../base/id.ts";
import {
  deleteBudget as deleteBudgetRow,
  findBudget,
  insertBudget,
  listBudgets as listBudgetRows,
  suspendBudget as liftBudgetRow,
  updateBudget as updateBudgetRow,
} from "../../store/workers/budget.ts";
import { isDuplicate, type Statement } from "../../store/db/database.ts";
import { findDepartmentRef } from "../../store/workers/department.ts";
import { record } from "../../store/events/journal.ts";
import {
  findCapacityTime,
  findFirstUse,
  listOpenRuns,
  measureBudgets,
  type MeasuredBudget,
  readSettledUse,
} from "../../store/workers/budget_ledger.ts";
import { listWorkerIds } from "../../store/workers/worker.ts";
import { type Answer, answer, answerPage, DELETED, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";

type BudgetDeps = Deps<"db" | "clock" | "engines" | "timeZone">;

/** Lists budgets with their usage, newest first. */
export async function listBudgets(deps: BudgetDeps, filter: BudgetFilter): Promise<Answer<Budget[]>> {
  const listing = await listBudgetRows(deps.db, filter);
  const ids = parseJson(listing.json).map(({ id }) => id);
  const budgets = await measure(deps, ids);
  // Restores the order of the list, by id.
  budgets.sort((a, b) => a.id < b.id ? 1 : -1);
  return answerPage({ ...listing, json: formatJson(budgets) });
}

export async function getBudget(deps: BudgetDeps, id: string): Promise<Answer<Budget>> {
  return answer(await requireBudget(deps, id));
}

async function requireBudget(deps: BudgetDeps, id: string): Promise<Budget> {
  const [budget] = await measure(deps, [id]);
  if (budget === undefined) throw notFound("budget", id);
  return budget;
}

/** Creates a budget. Throws `invalid_request` for an unknown target, and `conflict` for a taken name. */
export async function planBudget(
  deps: BudgetDeps,
  call: Call,
  input: BudgetCreate,
): Promise<Creation<Budget>> {
  const { db, clock, engines } = deps;
  const now = clock.now();
  checkLimit(input);
  const target = await resolveTarget(deps, input.target);
  const stored: StoredBudget = {
    id: createId(),
    ...input,
    target,
    lifted_until: null,
    created_at: now,
    updated_at: now,
  };
  const month = new Months(deps.timeZone).find(now);
  const settled = await readSettledUse(db, stored, now, month);
  const recent = await readSettledUse(db, { ...stored, period: "7d" }, now, month);
  const notified = { soft_notified_at: null, hard_notified_at: null };
  const use = { ...stored, settled, recent, first_at: await findFirstUse(db, target), ...notified };
  return {
    statements: [...insertBudget(stored, BUDGETS_MAX), buildEvent("budget.created", stored, call, now)],
    response: await buildBudget(deps, use, await listOpenRuns(db, now), engines.canMeasure(stored)),
    lost: () => conflict(`Cannot create the budget: ${BUDGETS_MAX} budgets exist. Delete some first.`),
    duplicate: () => buildNameTaken(input.name),
  };
}

/** Updates a budget. The change takes effect immediately. Throws `not_found`, `invalid_request` or `conflict`. */
export async function updateBudget(
  deps: BudgetDeps,
  call: Call,
  id: string,
  input: BudgetUpdate,
): Promise<Answer<Budget>> {
  const { db, clock } = deps;
  const before = requireFound(await findBudget(db, id), "budget", id);
  const { name, unit, limit, period, soft, action } = input;
  const target = input.target === undefined ? undefined : await resolveTarget(deps, input.target);
  checkLimit({ unit: unit ?? before.unit, limit: limit ?? before.limit });
  const now = clock.now();
  const change = { name, target, unit, limit, period, soft, action };
  try {
    await db.writeOr(
      [
        ...updateBudgetRow(id, change, now),
        buildEvent("budget.updated", { ...before, name: name ?? before.name }, call, now),
      ],
      () => notFound("budget", id),
    );
  } catch (error) {
    throw isDuplicate(error) ? buildNameTaken(name ?? before.name) : error;
  }
  return answer(await requireBudget(deps, id));
}

/** Deletes a budget, which stops blocking runs. The recorded usage stays. Throws `not_found`. */
export async function deleteBudget({ db, clock }: Deps<"db" | "clock">, call: Call, id: string) {
  const budget = requireFound(await findBudget(db, id), "budget", id);
  await db.writeOr(
    [...deleteBudgetRow(id), buildEvent("budget.deleted", budget, call, clock.now())],
    () => notFound("budget", id),
  );
  return DELETED;
}

/** Suspends a budget for a time, or ends the suspension with 0. Throws `not_found`. */
export async function liftBudget(
  deps: BudgetDeps,
  call: Call,
  id: string,
  { for_ms }: BudgetLift,
): Promise<Answer<Budget>> {
  const { db, clock } = deps;
  const budget = requireFound(await findBudget(db, id), "budget", id);
  const now = clock.now();
  const until = for_ms === 0 ? null : now + for_ms;
  await db.writeOr(
    [...liftBudgetRow(id, until, now), buildEvent("budget.lifted", budget, call, now, { until })],
    () => notFound("budget", id),
  );
  return answer(await requireBudget(deps, id));
}

function buildEvent(
  kind: EventKind,
  { id, name }: StoredBudget,
  { caller }: Call,
  now: number,
  data: Record<string, unknown> = {},
): Statement {
  return record(now, { kind, actor: caller.subject, data: { budget_id: id, name, ...data } });
}

function checkLimit({ unit, limit }: Pick<StoredBudget, "unit" | "limit">): void {
  if ((unit === "runs" || unit === "tokens") && !Number.isInteger(limit)) {
    throw invalid("limit", `must be a whole number of ${unit}`);
  }
}

// Budgets store ids, but people may write names.
async function resolveTarget({ db, engines }: BudgetDeps, target: string): Promise<string> {
  const [, kind = "", ref = ""] = /^([a-z]+):?(.*)$/s.exec(target) ?? [];
  if (kind === "engine" && engines.find(ref)?.name !== ref) {
    throw invalid("target", `no engine is called ${JSON.stringify(ref)}`);
  }
  if (kind !== "department" && kind !== "worker") return target;
  const ids = kind === "worker" ? await listWorkerIds(db, ref) : [(await findDepartmentRef(db, ref))?.id];
  if (ids.length > 1) {
    throw invalid("target", `several workers are called ${JSON.stringify(ref)}. Use an id.`);
  }
  if (ids[0] === undefined) {
    throw invalid("target", `no ${kind} has the id or the name ${JSON.stringify(ref)}`);
  }
  return `${kind}:${ids[0]}`;
}

async function measure(deps: BudgetDeps, ids: string[]): Promise<Budget[]> {
  const { db, clock, engines, timeZone } = deps;
  const now = clock.now();
  const month = new Months(timeZone).find(now);
  const [budgets, open] = await Promise.all([
    measureBudgets(db, { ids }, now, month),
    listOpenRuns(db, now),
  ]);
  return await Promise.all(
    budgets.map((budget) => buildBudget(deps, budget, open, engines.canMeasure(budget))),
  );
}

async function buildBudget(
  { db, clock, timeZone }: BudgetDeps,
  budget: MeasuredBudget,
  open: readonly OpenUse[],
  canMeasure: boolean,
): Promise<Budget> {
  const now = clock.now();
  const month = new Months(timeZone).find(now);
  const usage = sumBudgetUsage(budget, open, canMeasure);
  const state = classifyBudget(budget, usage);
  const { settled, recent, first_at, soft_notified_at: _soft, hard_notified_at: _hard, ...stored } = budget;
  const beyond = usage.used + usage.reserved - settled;
  const most = getCountedLimit(budget) - 1 - beyond;
  const resets = budget.period === "month"
    ? month.end
    : state === "hard" && most >= 0
    ? await findCapacityTime(db, budget, most, { now, month })
    : null;
  const pace = { counted: recent, firstAt: first_at };
  const { forecast, runsOutAt } = forecastUsage(budget, usage, pace, { now, month });
  return {
    ...stored,
    used: convertToUnit(usage.used, budget.unit),
    reserved: convertToUnit(usage.reserved, budget.unit),
    state,
    resets_at: resets,
    forecast: forecast === null ? null : convertToUnit(forecast, budget.unit),
    runs_out_at: runsOutAt,
  };
}

function buildNameTaken(name: string): ServiceError {
  return conflict(
    `Cannot name a budget ${JSON.stringify(name)}: another budget has this name. Case is ignored.`,
  );
}
