// pending -> running when the engine has started, running -> its end: builds the writes of a run, on any machine
import type { Clock } from "../base/clock.ts";
import type { VerifyResult } from "../domain/work/command.ts";
import { computeNextLimit, type RateLimit } from "../domain/workers/rate_limit.ts";
import { pickRunKeys, type RunIdentity } from "../domain/call/run_identity.ts";
import type { DataPaths } from "../base/paths.ts";
import type { Catalog } from "../engine/catalog.ts";
import { chooseEngine } from "../engine/fallback.ts";
import type { EngineOutcome, EngineSession } from "../engine/engine.ts";
import { resolveReset } from "../engine/protocol/reset_time.ts";
import type { Database, Statement } from "../store/db/database.ts";
import {
  countLimitedRuns,
  type ExecutionEnd,
  hasEndedWith,
  setSession,
  startExecution,
} from "../store/work/execution.ts";
import { record, recordTransition } from "../store/events/journal.ts";
import { deleteEndedLimit, findLimit, listLimits } from "../store/workers/rate_limit.ts";
import { storeContext } from "../store/chat/conversation_context.ts";
import { findTask } from "../store/work/task.ts";
import { endTree, freeNewTree, type TreeEnd } from "../store/work/tree.ts";
import type { Claim } from "./claim.ts";
import {
  type EndedTask,
  endRun,
  type LimitHit,
  type Rules,
  RUNNER_LOST,
  RUNNER_STOPPED,
  STOPPED,
} from "./ending.ts";
import { chooseUsage } from "./usage_recorder.ts";
import type { Interruption } from "../domain/work/interruption.ts";

interface RecorderOptions {
  db: Database;
  clock: Clock;
  engines: Catalog;
  paths: DataPaths;
  rules: Rules;
  /** Ends the requests that a run has open through gateways, and stores their usage. */
  endGateways: (executionId: string) => Promise<void>;
}

/** An outcome with the result of its check and the changes of its worktree, if any. */
export type RunOutcome = EngineOutcome & { verify?: VerifyResult; tree?: TreeEnd };

/** When a run started, and whether that is stored. */
export interface StartState {
  at: number | null;
  stored: boolean;
}

// A runner may return one task this many times in a row.
const GIVEN_BACK_MAX = 20;

// Failures before the first process of an agent.
const NOT_STARTED: readonly string[] = ["setup", "spawn_failed", "isolation"];

/** Builds the statements for the start, session and end of a run. The caller writes them. */
export class Recorder {
  readonly #options: RecorderOptions;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** pending -> running. Guarded. */
  buildStart({ execution }: Claim, at: number): Statement[] {
    return [...startExecution(execution.execution_id, at), recordStart(execution, at)];
  }

  /** Stores the session during the run, so that the next attempt can resume it after a crash. */
  buildSession(claim: Claim, session: EngineSession): Statement[] {
    const { execution_id: id } = claim.execution;
    return [setSession(id, session.id), ...buildContext(claim, session, this.#options.clock.now())];
  }

  /** Builds the batch that ends a run: outcome, task, reply and journal. Guarded: the first outcome wins. */
  async buildEnd(
    claim: Claim,
    outcome: RunOutcome,
    start: StartState,
    interruption: Interruption | null,
  ): Promise<Statement[]> {
    const { db, clock, rules, engines, endGateways } = this.#options;
    const { execution } = claim;
    await endGateways(execution.execution_id);
    const now = clock.now();
    const ended = buildExecutionEnd(execution.session_key, outcome, interruption);
    if (ended.error === STOPPED && claim.remote === true) {
      ended.error = await this.#classifyReturn(execution.task_id);
    }
    const limitHit = ended.failure === "rate_limited" ? await this.#findLimit(claim, outcome, now) : null;
    const isReplaced = interruption === null && await this.#isReplaced(claim, outcome, now);
    const prices = engines.find(execution.engine)?.config.prices;
    const usage = await chooseUsage(db, execution.execution_id, ended.usage, prices);
    const end = {
      ...ended,
      usage,
      engine_use: outcome.engineUse,
      started_at: start.at,
      met: limitHit,
      isReplaced,
    };
    const statements = [
      ...buildContext(claim, { id: outcome.sessionId, usage: outcome.sessionUsage }, now),
      ...(end.status === "completed" && claim.remote !== true ? buildEngineBack(execution, now) : []),
      ...endRun(execution, end, await this.#findTask(claim), rules, now),
    ];
    if (outcome.tree !== undefined) statements.push(...endTree(execution.execution_id, outcome.tree, now));
    else if (NOT_STARTED.includes(ended.failure)) statements.push(freeNewTree(execution.execution_id));
    if (start.at !== null && !start.stored) statements.unshift(recordStart(execution, start.at));
    return statements;
  }

  // A stop uses up no attempt. A runner that keeps returning the same task has lost it.
  async #classifyReturn(taskId: string): Promise<string> {
    const often = await hasEndedWith(this.#options.db, taskId, RUNNER_STOPPED, GIVEN_BACK_MAX);
    return often ? RUNNER_LOST : RUNNER_STOPPED;
  }

  async #findLimit(claim: Claim, outcome: EngineOutcome, now: number): Promise<LimitHit> {
    const { db, rules } = this.#options;
    const { engine, task_id } = claim.execution;
    const resetsAt = outcome.reset === null ? null : resolveReset(outcome.reset, now, rules.defaultZone);
    const runsBefore = await countLimitedRuns(db, task_id);
    // A runner has its own provider login, so a limit there delays only this task (contract 18).
    if (claim.remote === true) {
      const before = { engine, until: now, strikes: runsBefore };
      const since = { since: now, announced: 0 };
      const limit = computeNextLimit(engine, { ...before, ...since }, resetsAt, now);
      return { limit, runsBefore, blocks: "task" };
    }
    const limit = computeNextLimit(engine, await findLimit(db, engine), resetsAt, now);
    const limits = await this.#readLimits(now);
    limits.set(engine, limit);
    const choice = outcome.engineUse === "acted" ? null : this.#chooseNext(claim, limits, now);
    return { limit, runsBefore, blocks: "engine", continues: choice !== null && !limits.has(choice) };
  }

  async #readLimits(now: number): Promise<Map<string, RateLimit>> {
    return new Map((await listLimits(this.#options.db, now)).map((limit) => [limit.engine, limit]));
  }

  // Returns the engine that would run the task next, or null when its engine is fixed.
  #chooseNext({ needs }: Claim, limits: ReadonlyMap<string, RateLimit>, now: number): string | null {
    return needs === undefined ? null : chooseEngine(this.#options, needs, limits, now).engine;
  }

  // Whether the task can run again immediately, because its engine could not be used and another one has not been tried.
  async #isReplaced(
    { execution, needs }: Claim,
    { engineUse }: EngineOutcome,
    now: number,
  ): Promise<boolean> {
    if (engineUse !== "unusable" || needs === undefined || needs.fallback === 0) return false;
    const unusable = [...JSON.parse(needs.unusable_engines) as string[], execution.engine];
    const task = { ...needs, unusable_engines: JSON.stringify(unusable) };
    const next = chooseEngine(this.#options, task, await this.#readLimits(now), now);
    return !unusable.includes(next.engine);
  }

  // A schedule may have changed during its run, so it is read again. An immediate task is not.
  async #findTask({ execution, task }: Claim): Promise<EndedTask | null> {
    return task.type === "immediate"
      ? { type: "immediate", deliver_to: task.deliver_to }
      : await findTask(this.#options.db, execution.task_id);
  }
}

function buildContext(claim: Claim, { id, usage }: EngineSession, now: number): Statement[] {
  if (claim.task.type !== "immediate" || id === "") return [];
  // The session is in a directory of the runner that ends with the run.
  if (claim.remote === true && (claim.execution.tree_id ?? "") !== "") return [];
  const context = { session_id: id, work_dir: claim.workDir, usage };
  return [storeContext(claim.execution.execution_id, context, now)];
}

// The limit has ended, and the engine works again.
function buildEngineBack(run: RunIdentity & { engine: string }, now: number): Statement[] {
  const { engine } = run;
  return recordTransition(deleteEndedLimit(engine, now), now, {
    kind: "engine.back",
    ...pickRunKeys(run),
    data: { engine },
  });
}

function recordStart(run: RunIdentity, at: number): Statement {
  return record(at, { kind: "execution.started", ...pickRunKeys(run) });
}

/** Builds the end of an execution. If the service ended the run, the service's reason replaces the engine's report (facts, engines 2.4). */
function buildExecutionEnd(
  sessionKey: string,
  outcome: RunOutcome,
  interruption: Interruption | null,
): ExecutionEnd {
  const { status, text, error, failure, exitCode, usage, sessionId, verify } = outcome;
  return {
    status,
    session_id: sessionId || sessionKey,
    result: text,
    error,
    failure,
    exit_code: exitCode,
    usage,
    verify,
    ...(status === "completed" || interruption === null ? {} : describeInterruption(interruption)),
  };
}

function describeInterruption(interruption: Interruption): Partial<ExecutionEnd> {
  if (interruption === "lost") return { failure: "server_lost", error: RUNNER_LOST };
  if (interruption === "shutdown") return { failure: "server_lost", error: STOPPED };
  if (interruption.startsWith("budget: ")) {
    return { failure: "budget", error: interruption.slice("budget: ".length) };
  }
  return { failure: "cancelled", error: "the run was cancelled" };
}
