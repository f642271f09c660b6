// Runs the coordinator's engine and reads its plan. pipeline/intake/routed_message.ts stores the outcome.
import type { Config } from "../../config/schema.ts";
import { UnsafePathError } from "../../base/files/open_directory.ts";
import { makePlainDir } from "../../base/files/plain_file.ts";
import { join } from "node:path";
import { type BeePlan, PLAN_JSON_SCHEMA, readPlan } from "../../domain/chat/bee_plan.ts";
import { type BeeContext, buildBeePrompt, type Correction } from "../../domain/chat/bee_prompt.ts";
import { addUsage, type Usage, USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import type { RunIdentity, RunKeys } from "../../domain/call/run_identity.ts";
import { BEE_SCOPES, BEE_SUBJECT } from "../../domain/call/scope.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { Engine, EngineOutcome } from "../../engine/engine.ts";
import type { Database } from "../../store/db/database.ts";
import { type EngineRunOptions, runEngine } from "./engine_run.ts";
import type { OutcomeWriter } from "../outcome_writer.ts";
import { chooseUsage, createUsageRecorder } from "../usage_recorder.ts";
import type { Interruption } from "../../domain/work/interruption.ts";
import { RunRegistry } from "../run_registry.ts";
import type { Failure } from "../../domain/call/vocabulary.ts";

export interface BeeRunnerOptions extends EngineRunOptions {
  config: Config;
  db: Database;
  engines: Catalog;
  /** Ends the requests that a run has open through gateways, and stores their usage. */
  endGateways: (executionId: string) => Promise<void>;
}

interface BeeQuestion {
  identity: RunIdentity;
  context: BeeContext;
}

/** A plan, or the reason why there is none. */
export type BeeOutcome =
  | { plan: BeePlan; usage: Usage }
  | { failure: Failure; error: string; usage: Usage; /** Whether another try may help. */ again: boolean };

/** Asks the coordinator's engine for a plan, one message per run. */
export class BeeRunner {
  readonly #options: BeeRunnerOptions;
  readonly #runs: RunRegistry;

  constructor(options: BeeRunnerOptions, writer: OutcomeWriter) {
    this.#options = options;
    this.#runs = new RunRegistry(options.clock, writer);
  }

  get running(): RunIdentity[] {
    return this.#runs.running;
  }

  /** Whether a run with these keys is in progress. */
  has(keys: Partial<RunKeys>): boolean {
    return this.#runs.has(keys);
  }

  /** Ends the runs of a conversation. Resolves when their outcomes are stored. */
  interrupt(sessionKey: string): Promise<void> {
    return this.#runs.interrupt({ session_key: sessionKey }, "cancelled");
  }

  /** Ends a run because a budget is used up; `words` name it. */
  stopRun(executionId: string, words: string): Promise<void> {
    return this.#runs.interrupt({ execution_id: executionId }, `budget: ${words}`);
  }

  /** Ends every run. The next start routes their messages. */
  stopAll(): Promise<void> {
    return this.#runs.stopAll();
  }

  /** Runs the engine and passes the outcome to `store`. Resolves when another run may start. Never throws. */
  start(
    question: BeeQuestion,
    store: (outcome: BeeOutcome, interruption: Interruption | null) => Promise<void>,
  ): Promise<void> {
    return this.#runs.start<BeeOutcome>({
      identity: question.identity,
      timeoutMs: this.#options.config.bee.timeout,
      work: (signal) => this.#askTwice(question, signal),
      broken: buildFailure("spawn_failed", "the service could not prepare the run. See its log"),
      store: async (outcome, interruption) =>
        await store(await this.#addUsage(question.identity, outcome), interruption),
    });
  }

  async #addUsage({ execution_id }: RunIdentity, outcome: BeeOutcome): Promise<BeeOutcome> {
    const { db, engines, config, endGateways } = this.#options;
    await endGateways(execution_id);
    const prices = engines.find(config.bee.engine)?.config.prices;
    return { ...outcome, usage: await chooseUsage(db, execution_id, outcome.usage, prices) };
  }

  // The first unusable answer is sent back once with its problem (contract 4.4).
  async #askTwice(question: BeeQuestion, signal: AbortSignal): Promise<BeeOutcome> {
    const { engines, config } = this.#options;
    const engine = engines.find(config.bee.engine);
    if (engine === null) return buildFailure("spawn_failed", `no engine is called ${config.bee.engine}`);
    const first = await this.#ask(question, engine, null, signal);
    if (!("problem" in first)) return first;
    const second = await this.#ask(question, engine, first, signal);
    const usage = addUsage(first.usage, second.usage);
    if (!("problem" in second)) return { ...second, usage };
    const error = `its plan cannot be used: ${second.problem}`;
    return { failure: "engine_error", error, usage, again: false };
  }

  async #ask(
    { identity, context }: BeeQuestion,
    engine: Engine,
    before: UnusableAnswer | null,
    signal: AbortSignal,
  ): Promise<BeeOutcome | UnusableAnswer> {
    const correction: Correction | null = before && { answer: before.answer, problem: before.problem };
    const { paths, clock, config } = this.#options;
    const workDir = join(paths.root, "bee");
    try {
      makePlainDir({ root: paths.root, path: workDir });
    } catch (error) {
      if (error instanceof UnsafePathError) return buildFailure("isolation", error.message);
      throw error;
    }
    const prompt = buildBeePrompt(
      { ...context, now: clock.now() },
      correction,
      config.limits.max_prompt_bytes,
    );
    const briefing = {
      context: JSON.stringify({ ...context, correction }, null, 2),
      prompt,
      retelling: prompt,
      session: null,
      extraArgs: "",
    };
    const recorder = createUsageRecorder(this.#options, identity.execution_id, engine);
    const again = correction === null ? "" : ", corrected";
    const outcome = await runEngine(this.#options, {
      identity,
      engine,
      stateOwner: BEE_SUBJECT,
      workDir,
      instruction: prompt,
      schema: PLAN_JSON_SCHEMA,
      signal,
      grant: () => Promise.resolve({ subject: BEE_SUBJECT, scopes: BEE_SCOPES }),
      brief: () => Promise.resolve(briefing),
      reports: {
        ...recorder,
        onUsage: (now) => recorder.onUsage(addUsage(before?.usage ?? USAGE_UNKNOWN, now)),
      },
      opening: `[${engine.name} starts, attempt ${identity.attempt}${again}]`,
      closing: (outcome) => {
        const read = this.#read(outcome, context);
        return "problem" in read ? `[the answer cannot be used: ${read.problem}]` : null;
      },
    });
    return this.#read(outcome, context);
  }

  #read(
    { status, text, failure, error, usage }: EngineOutcome,
    context: BeeContext,
  ): BeeOutcome | UnusableAnswer {
    if (status === "failed") return { failure: failure || "engine_error", error, usage, again: true };
    const { workers: candidates, timeZone } = context;
    const plan = readPlan(text, { candidates, timeZone, now: this.#options.clock.now() });
    return "problem" in plan ? { answer: text, problem: plan.problem, usage } : { plan, usage };
  }
}

type UnusableAnswer = Correction & { usage: Usage };

function buildFailure(failure: Failure, error: string): BeeOutcome {
  return { failure, error, usage: USAGE_UNKNOWN, again: true };
}
