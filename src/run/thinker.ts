// A coordinator's run on an engine: running -> completed or failed; what becomes of its message is in routing.ts
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/schema.ts";
import { type BeePlan, PLAN_JSON_SCHEMA, readPlan } from "../domain/bee_plan.ts";
import { type BeeContext, beePrompt, type Correction } from "../domain/bee_prompt.ts";
import { type Failure, type Usage, USAGE_UNKNOWN } from "../domain/execution.ts";
import { BEE_SCOPES, BEE_SUBJECT } from "../domain/scope.ts";
import type { Catalog } from "../engine/catalog.ts";
import { type Engine, type EngineOutcome, failedOutcome } from "../engine/engine.ts";
import { RunLog } from "../engine/run_log.ts";
import { newId } from "../base/id.ts";
import { logger } from "../base/log.ts";
import { type DataPaths, eventsPath, logPath, runDirOf, stateDirOf } from "../base/paths.ts";
import { toolsOf, withoutSecrets } from "./equipment.ts";
import type { EnvironmentRequest, RunEnvironment } from "./environment.ts";

const log = logger("bee");

/** What the coordinator's runs are made with. */
export interface ThinkerOptions {
  clock: Clock;
  config: Config;
  engines: Catalog;
  paths: DataPaths;
  environmentOf: (request: EnvironmentRequest) => Promise<RunEnvironment>;
}

/** One message that is thought about. */
export interface Question {
  /** Id of the coordinator's run. */
  id: string;
  runId: string;
  attempt: number;
  sessionKey: string;
  context: BeeContext;
}

/** What came of it: a plan, or why there is none. */
export type Thought =
  | { plan: BeePlan; usage: Usage }
  | { failure: Failure; error: string; usage: Usage; /** Whether another try may help. */ again: boolean };

/** Why a run is ended before it ends by itself. */
export type Interruption = "cleared" | "shutdown" | "late";

/** Runs the coordinator's engine for one message after the other, and ends it when it has to. */
export class Thinker {
  readonly #options: ThinkerOptions;
  readonly #going = new Map<string, { sessionKey: string; abort: AbortController; ended: Promise<void> }>();

  constructor(options: ThinkerOptions) {
    this.#options = options;
  }

  /** How many messages are thought about. */
  get running(): number {
    return this.#going.size;
  }

  /** Whether this message is thought about. */
  has(messageId: string): boolean {
    return this.#going.has(messageId);
  }

  /** Ends what is going on for a conversation; resolves when it is over and stored. */
  async interrupt(sessionKey: string): Promise<void> {
    const own = [...this.#going.values()].filter((one) => one.sessionKey === sessionKey);
    for (const { abort } of own) abort.abort("cleared" satisfies Interruption);
    await Promise.all(own.map(({ ended }) => ended));
  }

  /** Ends everything; the messages are routed after the next start. */
  async stopAll(): Promise<void> {
    const all = [...this.#going.values()];
    for (const { abort } of all) abort.abort("shutdown" satisfies Interruption);
    await Promise.all(all.map(({ ended }) => ended));
  }

  /** Thinks about a message in the background, then hands over what came of it. Never throws. */
  begin(
    question: Question,
    then: (thought: Thought, interruption: Interruption | null) => Promise<void>,
  ): void {
    const { id } = question.context.message;
    const abort = new AbortController();
    const { clock, config } = this.#options;
    const cancelTimer = clock.after(config.bee.timeout, () => abort.abort("late" satisfies Interruption));
    const ended = this.#think(question, abort.signal)
      .catch((error): Thought => {
        log.error("The coordinator's run {id} broke: {error}", { id: question.id, error });
        return {
          ...FAILED,
          failure: "spawn_failed",
          error: "the service could not prepare the run; its log tells more",
        };
      })
      .then((thought) => then(thought, abort.signal.aborted ? abort.signal.reason as Interruption : null))
      .finally(() => {
        cancelTimer();
        this.#going.delete(id);
      });
    this.#going.set(id, { sessionKey: question.sessionKey, abort, ended });
  }

  async #think(question: Question, signal: AbortSignal): Promise<Thought> {
    const { engines, config, clock, paths } = this.#options;
    const engine = engines.find(config.bee.engine);
    if (engine === null) {
      return { ...FAILED, failure: "spawn_failed", error: `no engine is called ${config.bee.engine}` };
    }
    const runLog = await RunLog.open({
      path: logPath(paths, question.id),
      maxBytes: config.limits.max_log_bytes,
      now: () => clock.now(),
      onWrite: () => {},
      stamped: true,
    });
    try {
      return await this.#ask(question, engine, runLog, signal);
    } finally {
      await runLog.close();
    }
  }

  // One answer that cannot be used is sent back once, with what is wrong with it (contract 4, point 4).
  async #ask(question: Question, engine: Engine, runLog: RunLog, signal: AbortSignal): Promise<Thought> {
    const { workers: candidates, timeZone } = question.context;
    let correction: Correction | null = null;
    let usage = USAGE_UNKNOWN;
    while (true) {
      const outcome: EngineOutcome = await this.#run(question, engine, runLog, correction, signal);
      usage = added(usage, outcome.usage);
      if (outcome.status === "failed") {
        return { failure: outcome.failure || "engine_error", error: outcome.error, usage, again: true };
      }
      const read = readPlan(outcome.text, { candidates, timeZone, now: this.#options.clock.now() });
      if (!("fault" in read)) return { plan: read, usage };
      runLog.line(`[the answer cannot be used: ${read.fault}]`);
      if (correction !== null) {
        return {
          failure: "engine_error",
          error: `its plan cannot be used: ${read.fault}`,
          usage,
          again: false,
        };
      }
      correction = { answer: outcome.text, fault: read.fault };
    }
  }

  async #run(
    question: Question,
    engine: Engine,
    runLog: RunLog,
    correction: Correction | null,
    signal: AbortSignal,
  ): Promise<EngineOutcome> {
    const { paths, clock, config, environmentOf } = this.#options;
    const runDir = runDirOf(paths, newId());
    const workDir = join(paths.root, "bee");
    const prompt = beePrompt({ ...question.context, now: clock.now() }, correction);
    const contextPath = join(runDir, "context.json");
    for (const dir of [workDir, join(runDir, "tmp")]) Deno.mkdirSync(dir, { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(contextPath, JSON.stringify({ ...question.context, correction }, null, 2), {
      mode: 0o600,
    });
    const { env, secrets } = await environmentOf({
      identity: identityOf(question),
      engine,
      runDir,
      contextPath,
    });
    const events = engine.agent
      ? await RunLog.open({
        path: eventsPath(paths, question.id),
        maxBytes: config.limits.max_log_bytes,
        now: () => clock.now(),
        onWrite: () => {},
        stamped: false,
      })
      : null;
    for (const secret of secrets) for (const file of [runLog, events]) file?.mask(secret);
    runLog.line(
      `[${engine.name} thinks, attempt ${question.attempt}${correction === null ? "" : ", corrected"}]`,
    );
    try {
      if (signal.aborted) return failedOutcome("cancelled", "the run was ended");
      const outcome = await engine.start({
        runId: question.runId,
        workDir,
        instruction: prompt,
        prompt,
        retelling: prompt,
        session: null,
        env,
        runDir,
        stateDir: stateDirOf(paths, "bee", engine),
        extraArgs: "",
        tools: toolsOf(env, engine),
        schema: PLAN_JSON_SCHEMA,
        log: runLog,
        events,
        signal,
        onStart: () => {},
        onSession: () => {},
      });
      return withoutSecrets(secrets, outcome);
    } finally {
      await events?.close();
      void Deno.remove(runDir, { recursive: true }).catch(() => {});
    }
  }
}

const FAILED = { usage: USAGE_UNKNOWN, again: true } as const;

function identityOf({ id, runId, attempt, sessionKey, context }: Question) {
  return {
    subject: BEE_SUBJECT,
    scopes: BEE_SCOPES,
    id,
    attempt,
    runId,
    workerId: "",
    taskId: "",
    sessionKey,
    messageId: context.message.id,
  };
}

function added(a: Usage, b: Usage): Usage {
  const sum = (x: number | null, y: number | null) => x === null ? y : y === null ? x : x + y;
  return {
    input_tokens: sum(a.input_tokens, b.input_tokens),
    output_tokens: sum(a.output_tokens, b.output_tokens),
    cost_usd: sum(a.cost_usd, b.cost_usd),
  };
}
