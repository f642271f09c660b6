// pending -> running when the engine has started; the outcome of a run is stored by ending.ts
import type { Gate, Verified, Verify } from "../domain/command.ts";
import { nextLimit } from "../domain/rate_limit.ts";
import { keysOf, type RunIdentity } from "../domain/run_identity.ts";
import type { Catalog } from "../engine/catalog.ts";
import { type Engine, type EngineOutcome, type EngineSession, failedOutcome } from "../engine/engine.ts";
import { resetTime } from "../engine/reset_time.ts";
import { LogText } from "../engine/run_log.ts";
import { faultPoint } from "../base/fault_point.ts";
import { logger } from "../base/log.ts";
import { ctlPath } from "../base/paths.ts";
import type { Database, Statement } from "../store/database.ts";
import { countLimitedRuns, type ExecutionEnd, setSession, startExecution } from "../store/execution.ts";
import { moved, record } from "../store/journal.ts";
import { findLimit, forgetLimit } from "../store/rate_limit.ts";
import { findTask } from "../store/task.ts";
import { keepContext } from "../store/session.ts";
import type { Bells } from "../base/bells.ts";
import type { Steps } from "../base/steps.ts";
import type { Waits } from "../base/waits.ts";
import { brief, grantOf } from "./briefing.ts";
import type { Claim } from "./claim.ts";
import { type EndedTask, endRun, type MetLimit, type Rules, STOPPED } from "./ending.ts";
import { type EngineRunOptions, runEngine } from "./engine_run.ts";
import { Gates } from "./gate.ts";
import { type InstantClaim, type InstantEnd, storeInstants } from "./instant.ts";
import { meter, priced } from "./meter.ts";
import { OutcomeWriter } from "./outcome_writer.ts";
import { type Interruption, Runner } from "./runner.ts";
import { workDirProblem } from "./work_dir.ts";

const log = logger("executor");

/** What the executor works with. */
interface ExecutorOptions extends EngineRunOptions {
  db: Database;
  bells: Bells;
  engines: Catalog;
  rules: Rules;
  waits: Waits;
  steps: Steps;
  /** Name of the bell that rings when a log grows. */
  logBell: (executionId: string) => string;
}

/** An outcome, and what checks of the work came to, where there were any. */
type Outcome = EngineOutcome & { verify?: Verified };

/** When a run started, and whether that is in the database already. */
interface Start {
  at: number | null;
  stored: boolean;
}

/** Takes an execution of a worker from its claim to its outcome. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #runner: Runner;
  readonly #gates: Gates;
  /** How often every run was ended. */
  #stops = 0;

  constructor(options: ExecutorOptions) {
    const { db, clock } = options;
    this.#options = options;
    this.#runner = new Runner(clock, new OutcomeWriter(clock, () => db.broken !== null));
    this.#gates = new Gates(options);
  }

  /** The executions in progress, and the gates before them. */
  get running(): RunIdentity[] {
    return [...this.#gates.running, ...this.#runner.running];
  }

  /** Ends a run, or the gate before it; resolves when its processes are gone and its outcome is stored. Unknown ids resolve at once. */
  interrupt(executionId: string): Promise<void> {
    return this.#end(executionId, "cancelled");
  }

  /** Ends a run because a budget is used up; `words` say which. Resolves as interrupt() does. */
  stopFor(executionId: string, words: string): Promise<void> {
    return this.#end(executionId, `budget: ${words}`);
  }

  async #end(executionId: string, reason: Interruption): Promise<void> {
    await this.#gates.interrupt(executionId, reason);
    await this.#runner.interrupt({ execution_id: executionId }, reason);
  }

  /** Ends every run; their tasks go back to where they were, for the next start (reliability SHD-2). */
  async stopAll(): Promise<void> {
    this.#stops++;
    await Promise.all([this.#gates.stopAll(), this.#runner.stopAll()]);
  }

  /** Runs a claim behind its gate: its task runs when that lets it (contract 15). Never throws. */
  async executeGated(claim: Claim, gate: Gate): Promise<void> {
    const stops = this.#stops;
    const passed = await this.#gates.pass(claim, gate);
    if (passed === null) return;
    const ended = this.execute(passed);
    // Whoever ended every run meanwhile did not know of this one.
    if (stops !== this.#stops) await this.#end(passed.execution.execution_id, "shutdown");
    await ended;
  }

  /** Runs a claim to its end. Never throws: whatever happens is an outcome. */
  execute(claim: Claim): Promise<void> {
    const start: Start = { at: null, stored: false };
    return this.#runner.start({
      identity: claim.execution,
      work: (signal) => this.#work(claim, signal, start),
      broken: failedOutcome(
        "spawn_failed",
        "Cannot run this: the service could not prepare it; its log tells more",
      ),
      store: (outcome, interruption) => this.#store(claim, outcome, start, interruption),
    });
  }

  /**
   * Runs claims that nobody has stored yet, of engines inside this process, and stores them from beginning to end in one commit.
   * Answers those of which nothing is stored: they have to be claimed first.
   */
  async executeInstant(claims: readonly InstantClaim[]): Promise<InstantClaim[]> {
    const { signal } = new AbortController();
    const tried = await Promise.allSettled(claims.map(async (claim): Promise<InstantEnd | null> => {
      const start: Start = { at: null, stored: false };
      const log = new LogText();
      const outcome = await this.#work(claim, signal, start, log);
      if (outcome.status !== "completed" || start.at === null) return null;
      const end = { ...endOf(claim.execution.session_key, outcome, null), started_at: start.at };
      return { claim, end, log: log.text };
    }));
    const ends = tried.flatMap((one) => one.status === "fulfilled" && one.value !== null ? [one.value] : []);
    if (ends.length > 0 && !await storeInstants(this.#options, ends)) return [...claims];
    return claims.filter((claim) => !ends.some((one) => one.claim === claim));
  }

  async #work(claim: Claim, signal: AbortSignal, start: Start, keptLog?: LogText): Promise<Outcome> {
    const { execution, workDir } = claim;
    const { engines, db, bells, paths, logBell, config, waits, steps } = this.#options;
    const engine = engines.find(execution.engine);
    if (engine === null) {
      return failedOutcome("spawn_failed", `Cannot start: no engine is called ${execution.engine}`);
    }
    const problem = workDirProblem(workDir, this.#options.paths);
    if (problem !== null) {
      return failedOutcome("spawn_failed", `Cannot use the work directory ${workDir}: ${problem}`);
    }
    return await runEngine(this.#options, {
      identity: execution,
      engine,
      stateOwner: execution.worker_id,
      workDir,
      instruction: execution.instruction,
      schema: null,
      verify: JSON.parse(claim.task.verify) as Verify | null,
      signal,
      keptLog,
      grant: () => grantOf(db, claim),
      brief: () =>
        brief(db, claim, engine, { ctl: ctlPath(paths), maxPromptBytes: config.limits.max_prompt_bytes }),
      opening: `[${engine.name} starts in ${workDir}, attempt ${execution.attempt}]`,
      closing: lastLine,
      onWrite: () => bells.ring(logBell(execution.execution_id)),
      waitedMs: () => waits.waitedMs(execution.execution_id),
      onStart: () => this.#onStart(claim, engine, start),
      onStep: (words) => steps.note(execution.execution_id, words),
      onSession: (session) => void this.#storeSession(claim, session),
      ...meter(this.#options, execution.execution_id, engine),
    });
  }

  #onStart(claim: Claim, engine: Engine, start: Start): void {
    // An engine that has to start again starts more than one process.
    if (start.at !== null) return;
    start.at = this.#options.clock.now();
    // A run inside this process ends at once; its start is stored together with its outcome.
    if (engine.external) void this.#storeStart(claim, start.at, start);
  }

  // Not waited for: the database keeps the order of writes, so the outcome always comes after the start.
  async #storeStart({ execution }: Claim, at: number, start: Start): Promise<void> {
    const { execution_id: id } = execution;
    start.stored = true;
    try {
      await this.#options.db.write([...startExecution(id, at), started(execution, at)]);
      faultPoint("pid.recorded");
    } catch (error) {
      start.stored = false;
      log.warning("Cannot note that execution {id} started: {error}", { id, error });
    }
  }

  // Stored at once: if the service dies, the next attempt resumes this session.
  async #storeSession(claim: Claim, session: EngineSession): Promise<void> {
    const { db, clock } = this.#options;
    const { execution_id: id } = claim.execution;
    try {
      await db.write([setSession(id, session.id), ...this.#contextOf(claim, session, clock.now())]);
    } catch (error) {
      log.warning("Cannot note the session of execution {id}: {error}", { id, error });
    }
  }

  #contextOf(claim: Claim, { id, usage }: EngineSession, now: number): Statement[] {
    if (claim.task.type !== "immediate" || id === "") return [];
    const context = { session_id: id, work_dir: claim.workDir, usage };
    return [keepContext(claim.execution.execution_id, context, now)];
  }

  async #metLimit(claim: Claim, outcome: EngineOutcome, now: number): Promise<MetLimit> {
    const { db, rules } = this.#options;
    const { engine, task_id } = claim.execution;
    const resetsAt = outcome.reset === null ? null : resetTime(outcome.reset, now, rules.defaultZone);
    const [before, runsBefore] = await Promise.all([findLimit(db, engine), countLimitedRuns(db, task_id)]);
    return { limit: nextLimit(engine, before, resetsAt, now), runsBefore };
  }

  // A schedule may have been changed while it ran; of an immediate task nothing but its type counts.
  async #taskOf({ execution, task }: Claim): Promise<EndedTask | null> {
    return task.type === "immediate"
      ? { type: "immediate", deliver_to: task.deliver_to }
      : await findTask(this.#options.db, execution.task_id);
  }

  async #store(
    claim: Claim,
    outcome: Outcome,
    start: Start,
    interruption: Interruption | null,
  ): Promise<void> {
    const { db, clock, rules, waits, steps, engines } = this.#options;
    const { execution } = claim;
    waits.forget(execution.execution_id);
    steps.forget(execution.execution_id);
    const now = clock.now();
    const ended = endOf(execution.session_key, outcome, interruption);
    const met = ended.failure === "rate_limited" ? await this.#metLimit(claim, outcome, now) : null;
    const usage = priced(ended.usage, engines.find(execution.engine)?.config.prices);
    const end = { ...ended, usage, started_at: start.at, met };
    const statements = [
      ...this.#contextOf(claim, { id: outcome.sessionId, usage: outcome.sessionUsage }, now),
      ...(end.status === "completed" ? engineBack(execution, now) : []),
      ...endRun(execution, end, await this.#taskOf(claim), rules, now),
    ];
    if (start.at !== null && !start.stored) statements.unshift(started(execution, start.at));
    faultPoint("outcome.pre-commit");
    const { won } = await db.write(statements);
    faultPoint("outcome.post-commit");
    if (!won) log.warning("Execution {id} had an outcome already", { id: execution.execution_id });
  }
}

// A limit that was met, and is over: the engine works again.
function engineBack(run: RunIdentity & { engine: string }, now: number): Statement[] {
  const { engine } = run;
  return moved(forgetLimit(engine, now), now, { kind: "engine.back", ...keysOf(run), data: { engine } });
}

function started(run: RunIdentity, at: number): Statement {
  return record(at, { kind: "execution.started", ...keysOf(run) });
}

function endOf(sessionKey: string, outcome: Outcome, interruption: Interruption | null): ExecutionEnd {
  const { status, text, error, failure, exitCode, usage, sessionId, verify } = outcome;
  // When we ended the run, our failure counts, whatever the engine reports (facts, engines 2.4).
  const ours: Partial<ExecutionEnd> = status === "completed" || interruption === null
    ? {}
    : interruption === "shutdown"
    ? { failure: "server_lost", error: STOPPED }
    : interruption.startsWith("budget: ")
    ? { failure: "budget", error: interruption.slice("budget: ".length) }
    : { failure: "cancelled", error: "the run was cancelled" };
  return {
    status,
    session_id: sessionId || sessionKey,
    result: text,
    error,
    failure,
    exit_code: exitCode,
    usage,
    verify,
    ...ours,
  };
}

function lastLine(outcome: EngineOutcome): string {
  if (outcome.status === "completed") return "[completed]";
  return `[failed: ${outcome.failure}${outcome.error === "" ? "" : `, ${outcome.error}`}]`;
}
