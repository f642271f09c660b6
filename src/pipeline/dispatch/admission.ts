// Decides whether a run may start. Admission reads rows and writes nothing.
import {
  type Amounts,
  type BudgetUsage,
  computeMedian,
  formatBudgetReason,
  getAmount,
  getCountedLimit,
  isLifted,
  mayStart,
  NOTHING_USED,
  type OpenUse,
  sumBudgetUsage,
} from "../../domain/workers/budget.ts";
import { BEE_SUBJECT } from "../../domain/call/scope.ts";
import { type Block, formatResume } from "../../domain/work/block.ts";
import { Months } from "../../domain/workers/month.ts";
import { buildEngineBlock, type RateLimit } from "../../domain/workers/rate_limit.ts";
import type { DataPaths } from "../../base/paths.ts";
import type { Catalog } from "../../engine/catalog.ts";
import { chooseEngine, type EngineChoice } from "../../engine/fallback.ts";
import type { Database } from "../../store/db/database.ts";
import { type EngineWindow, listWindows } from "../../store/workers/engine_window.ts";
import {
  type CountedTarget,
  findCapacityTime,
  findExcessEnd,
  hasBudgets,
  listLastAmounts,
  listOpenRuns,
  listTargets,
  measureBudgets,
  type MeasuredBudget,
  type TargetedRun,
} from "../../store/workers/budget_ledger.ts";
import { listLimits } from "../../store/workers/rate_limit.ts";
import type { WaitingTask } from "../../store/work/task_queue.ts";

interface AdmissionOptions {
  db: Database;
  engines: Catalog;
  paths: DataPaths;
  timeZone: string;
  /** Runs of one worker, and of one conversation, per hour. */
  maxRunsPerHour: number;
}

/** The amounts that a run reserves in the batch of its claim. */
export interface Reservation {
  targets: string[];
  expected: Amounts;
}

export type Verdict = { block: Block } | { block: null; reservation: Reservation };
/** A verdict on a task, with the engine that would run it. */
type TaskVerdict = Verdict & { choice: EngineChoice };

/** The budget subjects of a run. */
type CountedRun = Pick<WaitingTask, "worker_id" | "session_key">;

const HOUR_MS = 3_600_000;
const RUNS_OF_MEDIAN = 20;

/** Decides whether tasks may start. A round reads the current usage once, and counts each task that it admits. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #months: Months;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#months = new Months(options.timeZone);
  }

  /** Runs `work` exclusively: two concurrent starts would both count the same free budget. */
  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  /** Reads the current usage for a round of decisions. */
  async startRound(now: number): Promise<AdmissionRound> {
    const { db } = this.#options;
    const [limits, windows, budgets] = await Promise.all([
      listLimits(db, now),
      listWindows(db),
      hasBudgets(db),
    ]);
    return new AdmissionRound(this.#options, now, {
      limits: new Map(limits.map((limit) => [limit.engine, limit])),
      windows,
      budgets,
      month: this.#months.find(now),
    });
  }
}

interface UsageSnapshot {
  limits: ReadonlyMap<string, RateLimit>;
  windows: readonly EngineWindow[];
  budgets: boolean;
  month: { start: number; end: number };
}

class AdmissionRound {
  readonly #options: AdmissionOptions;
  readonly #now: number;
  readonly #usage: UsageSnapshot;
  /** Budgets that are used up, with their targets. */
  readonly #full = new Map<string, { block: Block; target: string }>();
  /** Runs that this round has admitted since it read the open runs. */
  readonly #admitted: OpenUse[] = [];
  #open: OpenUse[] | null = null;

  constructor(options: AdmissionOptions, now: number, usage: UsageSnapshot) {
    this.#options = options;
    this.#now = now;
    this.#usage = usage;
  }

  // Open runs may be thousands, and most rounds do not need them. They are read before the ended runs: a run that ends in between counts
  // twice rather than not at all.
  async #readOpen(): Promise<void> {
    this.#open ??= await listOpenRuns(this.#options.db, this.#now);
  }

  get #openRuns(): OpenUse[] {
    return [...this.#open ?? [], ...this.#admitted];
  }

  /** Decides whether this task may start. An admitted task counts as started for the rest of the round. */
  async judge(task: WaitingTask): Promise<TaskVerdict> {
    const choice = chooseEngine(this.#options, task, this.#usage.limits, this.#now);
    return { ...await this.#judgeChoice(task, choice), choice };
  }

  async #judgeChoice(task: WaitingTask, { engine: name, fallback_from }: EngineChoice): Promise<Verdict> {
    const { db, engines } = this.#options;
    const engine = engines.find(name);
    const counting = { ...task, engine: name, fallback_from };
    const full = this.#full.get(task.held);
    if (full !== undefined && await this.#isUnder(full.target, counting)) return { block: full.block };
    // A runner has its own provider login, so the limits of this machine's login do not apply there (contract 18).
    const limit = task.runs_on !== "[]" ? null : this.#findLimit(name) ??
      (task.patient === 1
        ? findReserveBlock(
          this.#usage.windows,
          { engine: name, reserve: engine?.config.reserve ?? 0 },
          this.#now,
        )
        : null);
    if (limit !== null) return { block: limit };
    await this.#readOpen();
    const counted = await listTargets(db, counting, this.#now - HOUR_MS);
    const runLimit = engine?.external === false ? null : await this.#findRunLimit(task, counted);
    if (runLimit !== null) return { block: runLimit };
    return await this.#judgeBudgets(task, counted);
  }

  #admit(reservation: Reservation): Verdict {
    this.#admitted.push({ ...reservation, counted: NOTHING_USED });
    return { block: null, reservation };
  }

  // The worker may have left the department since, and the budget may have a new target.
  async #isUnder(target: string, run: TargetedRun): Promise<boolean> {
    if (target === "global") return true;
    const counted = await listTargets(this.#options.db, run, this.#now);
    return counted.some((one) => one.target === target);
  }

  /** Decides whether the coordinator may run. Only budgets apply. */
  async judgeCoordinator(run: { session_key: string; engine: string }): Promise<Verdict> {
    await this.#readOpen();
    const counted = { ...run, worker_id: BEE_SUBJECT };
    const targets = await listTargets(this.#options.db, counted, this.#now - HOUR_MS);
    return await this.#judgeBudgets(counted, targets);
  }

  async #judgeBudgets(run: CountedRun, counted: CountedTarget[]): Promise<Verdict> {
    const { db } = this.#options;
    const targets = counted.map(({ target }) => target);
    const budgets = this.#usage.budgets
      ? await measureBudgets(db, { targets }, this.#now, this.#usage.month)
      : [];
    const expected = await this.#estimate(run, budgets);
    for (const budget of budgets) {
      const block = await this.#findBudgetBlock(budget, expected, run);
      if (block !== null) return { block };
    }
    return this.#admit({ targets, expected });
  }

  #findLimit(engine: string): Block | null {
    const limit = this.#usage.limits.get(engine);
    return limit === undefined ? null : buildEngineBlock(limit);
  }

  async #findRunLimit(task: WaitingTask, counted: CountedTarget[]): Promise<Block | null> {
    const { db, maxRunsPerHour } = this.#options;
    for (const { target, runs } of counted) {
      if (target !== `worker:${task.worker_id}` && target !== `session:${task.session_key}`) continue;
      const open = this.#openRuns.filter(({ targets }) => targets.includes(target)).length;
      if (runs + open < maxRunsPerHour) continue;
      const most = Math.max(0, maxRunsPerHour - 1 - open);
      const at = await findExcessEnd(db, { target, unit: "runs", settled: runs }, most, this.#now - HOUR_MS);
      const until = at === null ? null : at + HOUR_MS;
      const whom = findBlockedTasks(target, task);
      const what = whom.kind === "all" ? "its worker" : "its conversation";
      return {
        held: `run_limit:${target}`,
        until,
        reason: `${what} has had ${runs + open} runs within an hour ` +
          `(limits.max_runs_per_hour is ${maxRunsPerHour})${formatResume(until)}`,
        whom,
      };
    }
    return null;
  }

  async #estimate(run: CountedRun, budgets: MeasuredBudget[]): Promise<Amounts> {
    if (budgets.every(({ unit }) => unit === "runs")) return { ...NOTHING_USED, runs: 1 };
    const last = await listLastAmounts(this.#options.db, run.worker_id, RUNS_OF_MEDIAN);
    return {
      runs: 1,
      tokens: computeMedian(last.map(({ tokens }) => tokens)),
      ms: computeMedian(last.map(({ ms }) => ms)),
      nano_usd: computeMedian(last.map(({ nano_usd }) => nano_usd)),
    };
  }

  async #findBudgetBlock(budget: MeasuredBudget, expected: Amounts, run: CountedRun): Promise<Block | null> {
    if (isLifted(budget, this.#now)) return null;
    const standing = sumBudgetUsage(budget, this.#openRuns, this.#options.engines.canMeasure(budget));
    const more = getAmount(expected, budget.unit);
    if (mayStart(budget, standing, more)) return null;
    const until = await this.#findFreeAt(budget, standing, more);
    const held = `budget:${budget.id}`;
    const whom = findBlockedTasks(budget.target, run);
    const block: Block = { held, until, reason: formatBudgetReason(budget, standing, until), whom };
    if (!mayStart(budget, standing, 0)) this.#full.set(held, { block, target: budget.target });
    return block;
  }

  // Returns when the budget allows the run again. Open runs may end earlier.
  async #findFreeAt(
    budget: MeasuredBudget,
    { used, reserved }: BudgetUsage,
    more: number,
  ): Promise<number | null> {
    const limit = getCountedLimit(budget);
    const open = used + reserved - budget.settled;
    // A run that needs more than the whole limit starts only when no other run uses the budget.
    const most = more > limit ? -open : Math.min(limit - 1, limit - more) - open;
    if (limit === 0 || most < 0) return null;
    return await findCapacityTime(this.#options.db, budget, most, {
      now: this.#now,
      month: this.#usage.month,
    });
  }
}

/** Blocks scheduled work while a provider window has less than the reserved share left. Returns null without such a window. */
export function findReserveBlock(
  windows: readonly EngineWindow[],
  { engine, reserve }: { engine: string; reserve: number },
  now: number,
): Block | null {
  // An expired window says nothing about the next one.
  const full = windows.filter((window) =>
    window.engine === engine && (window.resets_at ?? Infinity) > now && window.utilization > 1 - reserve
  );
  const [first] = full;
  if (reserve === 0 || first === undefined) return null;
  const resetsAt = Math.max(...full.map(({ resets_at }) => resets_at ?? Infinity));
  const until = resetsAt === Infinity ? null : resetsAt;
  const share = `${Math.round(first.utilization * 100)} %`;
  const reason =
    `${engine} has used ${share} of its window ${first.name}, and the rest is reserved for people`;
  return {
    held: `reserve:${engine}`,
    until,
    reason: reason + formatResume(until),
    whom: { kind: "patient" },
  };
}

function findBlockedTasks(target: string, { session_key }: CountedRun): Block["whom"] {
  return target.startsWith("session:") ? { kind: "conversation", session_key } : { kind: "all" };
}
