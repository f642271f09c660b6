// pending -> running when the engine has started; the end of a run is in ending.ts
import { join } from "node:path";
import { type Clock, sleep } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Failure } from "../domain/execution.ts";
import { contextFile } from "../domain/prompt.ts";
import type { Catalog } from "../engine/catalog.ts";
import type { Engine, EngineOutcome } from "../engine/engine.ts";
import { RunLog } from "../engine/run_log.ts";
import { logger } from "../log.ts";
import { type DataPaths, logPath } from "../paths.ts";
import type { Database, Statement } from "../store/database.ts";
import { type ExecutionEnd, startExecution } from "../store/execution.ts";
import { record } from "../store/journal.ts";
import { BELL, type Bells } from "../wake.ts";
import type { Claim } from "./dispatcher.ts";
import { brief } from "./briefing.ts";
import { endRun, type Rules, STOPPED } from "./ending.ts";
import type { EnvironmentRequest, RunEnvironment } from "./environment.ts";

const log = logger("executor");

/** What the executor works with. */
export interface ExecutorOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  engines: Catalog;
  config: Config;
  paths: DataPaths;
  rules: Rules;
  /** The environment and token of a run. */
  environmentOf: (request: EnvironmentRequest) => Promise<RunEnvironment>;
  /** Rings when a log grows. */
  logBell: (executionId: string) => string;
}

/** When a run started, and whether that is in the database already. */
interface Start {
  at: number | null;
  stored: boolean;
}

interface Equipment {
  runDir: string;
  env: Record<string, string>;
  token: string;
  prompt: string;
  extraArgs: string;
}

const BARE: Equipment = { runDir: "", env: {}, token: "", prompt: "", extraArgs: "" };

/** Why a run is to be ended before it ends by itself. */
type Interruption = "cancelled" | "shutdown";

interface Running {
  abort: AbortController;
  ended: Promise<void>;
}

/** Takes an execution from its claim to its outcome. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #running = new Map<string, Running>();

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** Ids of the executions that are going on. */
  get running(): string[] {
    return [...this.#running.keys()];
  }

  /** Ends a run; resolves when its processes are gone and its outcome is stored. Unknown ids resolve at once. */
  async interrupt(executionId: string): Promise<void> {
    const running = this.#running.get(executionId);
    running?.abort.abort("cancelled" satisfies Interruption);
    await running?.ended;
  }

  /** Ends every run; their tasks go back to where they were, for the next start (promises SHD-2). */
  async stopAll(): Promise<void> {
    const all = [...this.#running.values()];
    for (const { abort } of all) abort.abort("shutdown" satisfies Interruption);
    await Promise.all(all.map(({ ended }) => ended));
  }

  /** Runs a claim to its end. Never throws: whatever happens is an outcome. */
  execute(claim: Claim): Promise<void> {
    const abort = new AbortController();
    const ended = this.#execute(claim, abort.signal).finally(() => this.#running.delete(claim.execution.id));
    this.#running.set(claim.execution.id, { abort, ended });
    return ended;
  }

  async #execute(claim: Claim, signal: AbortSignal): Promise<void> {
    const start: Start = { at: null, stored: false };
    const outcome = await this.#outcomeOf(claim, signal, start).catch((error): EngineOutcome => {
      log.error("Execution {id} broke: {error}", { id: claim.execution.id, error });
      return failed("spawn_failed", "Cannot run this: the service could not prepare it; its log tells more");
    });
    await this.#store(claim, outcome, start, signal.aborted ? signal.reason as Interruption : null);
  }

  async #outcomeOf(claim: Claim, signal: AbortSignal, start: Start): Promise<EngineOutcome> {
    const { execution, workDir } = claim;
    const { clock, bells, config, engines, paths, logBell } = this.#options;
    const engine = engines.find(execution.engine);
    if (engine === null) {
      return failed("spawn_failed", `Cannot start: no engine is called ${execution.engine}`);
    }
    try {
      // Small and local: a synchronous call takes microseconds, an asynchronous one a turn of a busy loop.
      Deno.mkdirSync(workDir, { recursive: true });
    } catch (error) {
      return failed("spawn_failed", `Cannot use the work directory ${workDir}: ${fileFault(error)}`);
    }
    const opening = RunLog.open({
      path: logPath(paths, execution.id),
      maxBytes: config.limits.max_log_bytes,
      now: () => clock.now(),
      onWrite: () => bells.ring(logBell(execution.id)),
    });
    const [opened, equipped] = await Promise.allSettled([
      opening,
      engine.external ? this.#equip(claim, engine) : BARE,
    ]);
    const runDir = equipped.status === "fulfilled" ? equipped.value.runDir : "";
    if (opened.status === "rejected") throw opened.reason;
    const runLog = opened.value;
    try {
      if (equipped.status === "rejected") throw equipped.reason;
      const equipment = equipped.value;
      runLog.mask(equipment.token);
      runLog.line(`[${engine.name} starts in ${workDir}, attempt ${execution.attempt}]`);
      const outcome = await engine.start({
        runId: execution.run_id,
        workDir,
        instruction: execution.instruction,
        ...equipment,
        log: runLog,
        signal,
        onStart: () => {
          start.at = clock.now();
          // What runs in this process ends at once; its start is stored together with its end.
          if (engine.external) void this.#storeStart(claim, start.at, start);
        },
      });
      runLog.line(lastLine(outcome));
      return outcome;
    } finally {
      // On disk before the outcome is: a finished run has a whole log (promises DUR-9).
      await runLog.close();
      if (runDir !== "") void Deno.remove(runDir, { recursive: true }).catch(() => {});
    }
  }

  // What a program outside of this process gets: its briefing, its environment, and a directory of its own.
  async #equip(claim: Claim, engine: Engine): Promise<Equipment> {
    const { db, paths, environmentOf } = this.#options;
    const { execution } = claim;
    const runDir = join(paths.runs, execution.run_id);
    const contextPath = join(runDir, "context.json");
    const [{ env, token }, briefing] = await Promise.all([
      environmentOf({ claim, engine: engine.config, runDir, contextPath }),
      brief(db, claim),
    ]);
    Deno.mkdirSync(join(runDir, "tmp"), { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(contextPath, contextFile(briefing.context, execution.instruction), {
      mode: 0o600,
    });
    return { runDir, env, token, prompt: briefing.prompt, extraArgs: briefing.engineArgs[engine.name] ?? "" };
  }

  // Not waited for: the writer keeps the order, so the outcome always comes behind it.
  async #storeStart(claim: Claim, at: number, start: Start): Promise<void> {
    const { id } = claim.execution;
    start.stored = true;
    try {
      await this.#options.db.write([...startExecution(id, at), started(claim, at)]);
    } catch (error) {
      start.stored = false;
      log.warning("Cannot note that execution {id} started: {error}", { id, error });
    }
  }

  /** Writes the outcome, again and again while the database cannot be reached: the work is done and must not be lost. */
  async #store(
    claim: Claim,
    outcome: EngineOutcome,
    start: Start,
    interruption: Interruption | null,
  ): Promise<void> {
    const { db, clock, bells, rules } = this.#options;
    for (let waitMs = 100;; waitMs = Math.min(waitMs * 2, 5_000)) {
      try {
        const end = { ...endOf(claim.execution.session_key, outcome, interruption), started_at: start.at };
        const statements = endRun(claim.execution, end, claim.task, rules, clock.now());
        if (start.at !== null && !start.stored) statements.unshift(started(claim, start.at));
        const { won } = await db.write(statements);
        if (!won) log.warning("Execution {id} had an outcome already", { id: claim.execution.id });
        bells.ring(BELL.outbox);
        return;
      } catch (error) {
        log.error("Cannot store the outcome of execution {id}, trying again: {error}", {
          id: claim.execution.id,
          error,
        });
        await sleep(clock, waitMs);
      }
    }
  }
}

function started({ execution }: Claim, at: number): Statement {
  const { id, session_key, worker_id, task_id, message_id } = execution;
  return record(at, {
    kind: "execution.started",
    session_key,
    worker_id,
    task_id,
    execution_id: id,
    message_id,
  });
}

function endOf(sessionKey: string, outcome: EngineOutcome, interruption: Interruption | null): ExecutionEnd {
  const { status, text, error, failure, exitCode, usage, sessionId } = outcome;
  // What we ended ourselves is called that, whatever the engine makes of it (facts, engines 2.4).
  const ours: Partial<ExecutionEnd> = status === "completed" || interruption === null
    ? {}
    : interruption === "cancelled"
    ? { failure: "cancelled", error: "the run was cancelled" }
    : { failure: "server_lost", error: STOPPED };
  return {
    status,
    session_id: sessionId || sessionKey,
    result: text,
    error,
    failure,
    exit_code: exitCode,
    usage,
    ...ours,
  };
}

function failed(failure: Failure, error: string): EngineOutcome {
  const usage = { input_tokens: null, output_tokens: null, cost_usd: null };
  return { status: "failed", text: "", failure, error, exitCode: null, usage, sessionId: "" };
}

function lastLine(outcome: EngineOutcome): string {
  if (outcome.status === "completed") return "[completed]";
  return `[failed: ${outcome.failure}${outcome.error === "" ? "" : `, ${outcome.error}`}]`;
}

function fileFault(error: unknown): string {
  if (error instanceof Deno.errors.PermissionDenied) return "no permission";
  if (error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory) {
    return "not a directory";
  }
  return error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error);
}
