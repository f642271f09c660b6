// pending -> running when the engine has started; the end of a run is in ending.ts
import type { Clock } from "../base/clock.ts";
import { type Usage, USAGE_UNKNOWN } from "../domain/execution.ts";
import { nextLimit } from "../domain/rate_limit.ts";
import type { Catalog } from "../engine/catalog.ts";
import { type Engine, type EngineOutcome, failedOutcome } from "../engine/engine.ts";
import { resetTime } from "../engine/reset.ts";
import { RunLog } from "../engine/run_log.ts";
import { faultPoint } from "../base/fault_point.ts";
import { logger } from "../base/log.ts";
import { eventsPath, logPath, realPath, runDirOf, touchesData } from "../base/paths.ts";
import type { Statement } from "../store/database.ts";
import { countLimitedRuns, type ExecutionEnd, setSession, startExecution } from "../store/execution.ts";
import { record } from "../store/journal.ts";
import { findLimit, forgetLimit } from "../store/rate_limit.ts";
import { keepContext } from "../store/session.ts";
import type { Bells } from "../base/bells.ts";
import type { Claim } from "./claim.ts";
import { endRun, type MetLimit, type Rules, STOPPED } from "./ending.ts";
import { BARE, equip, type Equipment, type EquipmentOptions, withoutSecrets } from "./equipment.ts";
import { Storing } from "./outcome_writer.ts";

const log = logger("executor");

/** What the executor works with. */
export interface ExecutorOptions extends EquipmentOptions {
  clock: Clock;
  bells: Bells;
  engines: Catalog;
  rules: Rules;
  /** Rings when a log grows. */
  logBell: (executionId: string) => string;
}

/** When a run started, and whether that is in the database already. */
interface Start {
  at: number | null;
  stored: boolean;
}

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
  readonly #storing: Storing;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#storing = new Storing(options.db, options.clock);
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
    this.#storing.hurry();
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
      return failedOutcome(
        "spawn_failed",
        "Cannot run this: the service could not prepare it; its log tells more",
      );
    });
    await this.#store(claim, outcome, start, signal.aborted ? signal.reason as Interruption : null);
  }

  async #outcomeOf(claim: Claim, signal: AbortSignal, start: Start): Promise<EngineOutcome> {
    const { execution, workDir } = claim;
    const { engines } = this.#options;
    const engine = engines.find(execution.engine);
    if (engine === null) {
      return failedOutcome("spawn_failed", `Cannot start: no engine is called ${execution.engine}`);
    }
    // Looked at again: since the worker was made somebody may have put a link there (promises PTH-4).
    if (touchesData(realPath(workDir), this.#options.paths)) {
      return failedOutcome(
        "spawn_failed",
        `Cannot use the work directory ${workDir}: it leads into the service's own data directory`,
      );
    }
    try {
      // Small and local: a synchronous call takes microseconds, an asynchronous one a turn of a busy loop.
      Deno.mkdirSync(workDir, { recursive: true });
    } catch (error) {
      return failedOutcome("spawn_failed", `Cannot use the work directory ${workDir}: ${fileFault(error)}`);
    }
    const [opened, equipped] = await Promise.allSettled([
      this.#openLogs(execution.id, engine),
      engine.external ? equip(this.#options, claim, engine) : BARE,
    ]);
    const removeRunDir = () => {
      const runDir = runDirOf(this.#options.paths, execution.run_id);
      if (engine.external) void Deno.remove(runDir, { recursive: true }).catch(() => {});
    };
    if (opened.status === "rejected") {
      removeRunDir();
      throw opened.reason;
    }
    const { log: runLog, events } = opened.value;
    try {
      if (equipped.status === "rejected") throw equipped.reason;
      const { secrets, ...equipment } = equipped.value;
      for (const secret of secrets) for (const file of [runLog, events]) file?.mask(secret);
      runLog.line(`[${engine.name} starts in ${workDir}, attempt ${execution.attempt}]`);
      const outcome = withoutSecrets(
        secrets,
        await engine.start({
          runId: execution.run_id,
          workDir,
          instruction: execution.instruction,
          ...equipment,
          schema: null,
          log: runLog,
          events,
          signal,
          onStart: () => this.#onStart(claim, engine, start),
          onSession: (id) => void this.#storeSession(claim, id, equipment.session),
        }),
      );
      runLog.line(lastLine(outcome));
      return outcome;
    } finally {
      // On disk before the outcome is: a finished run has a whole log (promises DUR-9).
      await Promise.all([runLog.close(), events?.close()]);
      removeRunDir();
    }
  }

  async #openLogs(id: string, engine: Engine): Promise<{ log: RunLog; events: RunLog | null }> {
    const { clock, bells, config, paths, logBell } = this.#options;
    const common = {
      maxBytes: config.limits.max_log_bytes,
      now: () => clock.now(),
      onWrite: () => bells.ring(logBell(id)),
    };
    const [log, events] = await Promise.all([
      RunLog.open({ ...common, path: logPath(paths, id), stamped: true }),
      engine.agent ? RunLog.open({ ...common, path: eventsPath(paths, id), stamped: false }) : null,
    ]);
    return { log, events };
  }

  #onStart(claim: Claim, engine: Engine, start: Start): void {
    // An engine that has to begin anew starts more than one process.
    if (start.at !== null) return;
    start.at = this.#options.clock.now();
    // What runs in this process ends at once; its start is stored together with its end.
    if (engine.external) void this.#storeStart(claim, start.at, start);
  }

  // Not waited for: the writer keeps the order, so the outcome always comes behind it.
  async #storeStart(claim: Claim, at: number, start: Start): Promise<void> {
    const { id } = claim.execution;
    start.stored = true;
    try {
      await this.#options.db.write([...startExecution(id, at), started(claim, at)]);
      faultPoint("pid.recorded");
    } catch (error) {
      start.stored = false;
      log.warning("Cannot note that execution {id} started: {error}", { id, error });
    }
  }

  // Kept as soon as the engine has told it: should the service die, the next attempt goes on with this session.
  async #storeSession(claim: Claim, sessionId: string, resumed: Equipment["session"]): Promise<void> {
    const { db, clock } = this.#options;
    const { id } = claim.execution;
    const usage = resumed?.id === sessionId ? resumed.usage : USAGE_UNKNOWN;
    try {
      await db.write([
        setSession(id, sessionId),
        ...this.#contextOf(claim, { sessionId, usage }, clock.now()),
      ]);
    } catch (error) {
      log.warning("Cannot note the session of execution {id}: {error}", { id, error });
    }
  }

  #contextOf(claim: Claim, session: { sessionId: string; usage: Usage }, now: number): Statement[] {
    if (claim.task.type !== "immediate" || session.sessionId === "") return [];
    const context = { session_id: session.sessionId, work_dir: claim.workDir, usage: session.usage };
    return [keepContext(claim.execution.id, context, now)];
  }

  async #metLimit(claim: Claim, outcome: EngineOutcome, now: number): Promise<MetLimit> {
    const { db, rules } = this.#options;
    const { engine, task_id } = claim.execution;
    const resetsAt = outcome.reset === null ? null : resetTime(outcome.reset, now, rules.defaultZone);
    const [before, runsBefore] = await Promise.all([findLimit(db, engine), countLimitedRuns(db, task_id)]);
    return { limit: nextLimit(engine, before, resetsAt, now), runsBefore };
  }

  async #store(
    claim: Claim,
    outcome: EngineOutcome,
    start: Start,
    interruption: Interruption | null,
  ): Promise<void> {
    const { db, clock, rules } = this.#options;
    await this.#storing.store(claim.execution.id, async () => {
      const now = clock.now();
      const ended = endOf(claim.execution.session_key, outcome, interruption);
      const met = ended.failure === "rate_limited" ? await this.#metLimit(claim, outcome, now) : null;
      const end = { ...ended, started_at: start.at, met };
      const session = { sessionId: outcome.sessionId, usage: outcome.sessionUsage };
      const statements = [
        ...this.#contextOf(claim, session, now),
        ...(end.status === "completed" ? [forgetLimit(claim.execution.engine, now)] : []),
        ...endRun(claim.execution, end, claim.task, rules, now),
      ];
      if (start.at !== null && !start.stored) statements.unshift(started(claim, start.at));
      faultPoint("outcome.pre-commit");
      const { won } = await db.write(statements);
      faultPoint("outcome.post-commit");
      if (!won) log.warning("Execution {id} had an outcome already", { id: claim.execution.id });
    });
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
