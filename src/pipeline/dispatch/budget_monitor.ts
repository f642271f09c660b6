// Reports each budget when it becomes soft (nearly used) or hard (used up), once per period. Stops the open runs of a hard budget with action `stop`.
import {
  type BudgetUsage,
  classifyBudget,
  convertToUnit,
  findCountStart,
  formatAmount,
  formatBudgetReason,
  getCountedLimit,
  isLifted,
  mustStop,
  sumBudgetUsage,
} from "../../domain/workers/budget.ts";
import { Months } from "../../domain/workers/month.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { createLogger } from "../../base/log.ts";
import type { Catalog } from "../../engine/catalog.ts";
import { markLimitReported } from "../../store/workers/budget.ts";
import { record } from "../../store/events/journal.ts";
import {
  hasBudgets,
  listChangedTargets,
  listOpenRuns,
  measureBudgets,
  type MeasuredBudget,
  type OpenRun,
} from "../../store/workers/budget_ledger.ts";
import { insertNotice } from "../../store/chat/notice.ts";
import { ASIDE_MS, Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("budgets");

interface BudgetMonitorOptions extends StageServices {
  engines: Catalog;
  timeZone: string;
  /** Ends a run with a reason. Resolves when its outcome is stored. */
  stopRun: (executionId: string, words: string) => Promise<void>;
}

/** Creates the stage that reports nearly and fully used budgets, and stops runs when a budget with action `stop` is used up (contract 14). */
export function createBudgetMonitor(options: BudgetMonitorOptions): Stage {
  const { db, clock, engines, timeZone } = options;
  const months = new Months(timeZone);
  // After the first round only budgets with changes since the previous round are measured.
  let since = -1;
  /** Runs whose end was requested. Later rounds do not request it again. */
  const ending = new Set<string>();
  return new Stage(options, { name: "budgets", wakeup: WAKEUP.budget, pauseMs: ASIDE_MS, step });

  async function step(): Promise<number> {
    if (!await hasBudgets(db)) return Infinity;
    const now = clock.now();
    const month = months.find(now);
    const open = await listOpenRuns(db, now);
    // After the clock was set back, recent changes have timestamps after `now`.
    const targets = since === -1 || now < since
      ? null
      : [...new Set([...await listChangedTargets(db, since), ...open.flatMap((run) => run.targets)])];
    let nextAt = Infinity;
    for (const budget of await measureBudgets(db, targets === null ? null : { targets }, now, month)) {
      if (isLifted(budget, now)) continue;
      const usage = sumBudgetUsage(budget, open, engines.canMeasure(budget));
      await report(budget, usage, findCountStart(budget.period, now, month), now);
      if (budget.action === "stop") nextAt = Math.min(nextAt, stopOrWait(budget, usage, open, now));
    }
    // Set last, so that a failed round repeats from the same point.
    since = now;
    return Math.max(0, nextAt - now);
  }

  async function report(
    budget: MeasuredBudget,
    usage: BudgetUsage,
    before: number,
    now: number,
  ): Promise<void> {
    const state = classifyBudget(budget, usage);
    if (state !== "soft" && state !== "hard") return;
    const reportedAt = state === "hard"
      ? budget.hard_notified_at
      : Math.max(budget.hard_notified_at ?? -1, budget.soft_notified_at ?? -1);
    if (reportedAt !== null && reportedAt > before) return;
    const kind = `budget.${state}` as const;
    const session_key = budget.target.startsWith("session:") ? budget.target.slice("session:".length) : "";
    const { id, name, unit } = budget;
    const data = {
      budget_id: id,
      name,
      used: convertToUnit(usage.used, unit),
      reserved: convertToUnit(usage.reserved, unit),
      limit: budget.limit,
      unit,
      period: budget.period,
    };
    const content = `${formatState(budget, usage, state)}.`;
    await db.write([
      ...markLimitReported(id, state, before, now),
      record(now, { kind, session_key, data }),
      ...insertNotice({ kind, session_key, message_id: "", about: id, content }, now),
    ]);
  }

  // Returns when to measure again: used minutes grow without an event.
  function stopOrWait(
    budget: MeasuredBudget,
    usage: BudgetUsage,
    open: readonly OpenRun[],
    now: number,
  ): number {
    const own = open.filter(({ targets }) => targets.includes(budget.target));
    if (own.length === 0) return Infinity;
    if (!mustStop(budget, usage)) {
      const left = getCountedLimit(budget) - usage.used;
      return budget.unit === "minutes" ? now + Math.ceil(left / countRunning(own)) : Infinity;
    }
    const words = formatBudgetReason(budget, usage, null);
    for (const { execution_id } of own) endRun(execution_id, words);
    return Infinity;
  }

  // A run that could not be ended stays open, and the next round tries again.
  function endRun(id: string, words: string): void {
    if (ending.has(id)) return;
    ending.add(id);
    log.warning("The run {id} ends: {words}", { id, words });
    options.stopRun(id, words)
      .catch((error) => log.error("Cannot end the run {id} yet: {error}", { id, error }))
      .finally(() => ending.delete(id));
  }
}

function countRunning(open: readonly OpenRun[]): number {
  return Math.max(1, open.filter(({ started_at, waiting }) => started_at !== null && !waiting).length);
}

function formatState(budget: MeasuredBudget, usage: BudgetUsage, state: "soft" | "hard"): string {
  if (state === "hard") {
    const reason = formatBudgetReason(budget, usage, null);
    return `${reason[0]?.toUpperCase()}${reason.slice(1)}; further runs wait`;
  }
  const sum = formatAmount(usage.used + usage.reserved, budget.unit);
  return `The budget ${JSON.stringify(budget.name)} has used ${sum} of ${
    formatAmount(getCountedLimit(budget), budget.unit)
  } (${budget.period})`;
}
