// pending -> running when the engine has started, then to its outcome: runs on this machine
import type { Gate, Verify } from "../../domain/work/command.ts";
import type { McpServers } from "../../domain/workers/mcp_server.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { Catalog } from "../../engine/catalog.ts";
import { buildFailedOutcome, type Engine, type EngineSession } from "../../engine/engine.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { getCtlPath } from "../../base/paths.ts";
import type { SkillStore } from "../../files/skills.ts";
import type { Database } from "../../store/db/database.ts";
import { findSkills } from "../../store/workers/worker.ts";
import type { Wakeups } from "../../base/wakeups.ts";
import type { RunCalls } from "../../domain/work/run_calls.ts";
import type { RecentActivity } from "../../base/recent_activity.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import { buildBriefing, findGrant } from "../briefing.ts";
import type { Claim } from "../claim.ts";
import type { Rules } from "../ending.ts";
import type { EngineRunOptions } from "./engine_run.ts";
import { Gates } from "./gate.ts";
import { createSteering } from "./steering.ts";
import { createUsageRecorder } from "../usage_recorder.ts";
import { OutcomeWriter } from "../outcome_writer.ts";
import { Recorder, type RunOutcome, type StartState } from "../recorder.ts";
import type { Interruption } from "../../domain/work/interruption.ts";
import { RunRegistry } from "../run_registry.ts";
import { buildRunSkills } from "../skills.ts";
import { SetupError } from "../variables.ts";
import { runWorker } from "./worker_run.ts";
import { tryOpenWorkspace, type WorkspaceOptions } from "./workspaces.ts";

const log = createLogger("executor");

interface ExecutorOptions extends EngineRunOptions, Omit<WorkspaceOptions, "paths" | "umask" | "config"> {
  db: Database;
  wakeups: Wakeups;
  engines: Catalog;
  rules: Rules;
  waits: HumanWaits;
  skills: SkillStore;
  steps: RecentActivity;
  /** The calls of runs for their traces, or null while traces are off. */
  calls: RunCalls | null;
  /** Ends the requests that a run has open through gateways, and stores their usage. */
  endGateways: (executionId: string) => Promise<void>;
  /** Returns the wakeup key of a growing log. */
  logWakeup: (executionId: string) => string;
}

/** Takes a worker's execution from its claim to its outcome. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #runs: RunRegistry;
  readonly #gates: Gates;
  readonly #recorder: Recorder;
  /** Number of stopAll() calls so far. */
  #stops = 0;

  constructor(options: ExecutorOptions) {
    const { db, clock } = options;
    this.#options = options;
    this.#runs = new RunRegistry(clock, new OutcomeWriter(clock, () => db.broken !== null));
    this.#gates = new Gates(options);
    this.#recorder = new Recorder(options);
  }

  /** The executions in progress, and the gates before them. */
  get running(): RunIdentity[] {
    return [...this.#gates.runs.running, ...this.#runs.running];
  }

  /**
   * Ends a run, or the gate before it. Resolves when its processes are gone and its outcome is stored. Unknown ids resolve immediately.
   */
  interrupt(executionId: string): Promise<void> {
    return this.#end(executionId, "cancelled");
  }

  /** Ends a run because a budget is used up; `words` name it. Resolves as interrupt() does. */
  stopRun(executionId: string, words: string): Promise<void> {
    return this.#end(executionId, `budget: ${words}`);
  }

  async #end(executionId: string, reason: Interruption): Promise<void> {
    await this.#gates.runs.interrupt({ execution_id: executionId }, reason);
    await this.#runs.interrupt({ execution_id: executionId }, reason);
  }

  /** Ends every run. Their tasks return to their earlier status for the next start (reliability SHD-2). */
  async stopAll(): Promise<void> {
    this.#stops++;
    await Promise.all([this.#gates.runs.stopAll(), this.#runs.stopAll()]);
  }

  /** Runs a claim after its gate has passed (contract 15). Never throws. */
  async executeGated(claim: Claim, gate: Gate): Promise<void> {
    const stops = this.#stops;
    const passed = await this.#gates.pass(claim, gate);
    if (passed === null) return;
    const ended = this.execute(passed);
    // A stopAll() during the gate did not see this run.
    if (stops !== this.#stops) await this.#end(passed.execution.execution_id, "shutdown");
    await ended;
  }

  /** Runs a claim to its end. Never throws: every failure is an outcome. */
  execute(claim: Claim): Promise<void> {
    const start: StartState = { at: null, stored: false };
    return this.#runs.start({
      identity: claim.execution,
      work: (signal) => this.#work(claim, signal, start),
      broken: buildFailedOutcome(
        "spawn_failed",
        "Cannot run this: the service could not prepare it. See its log",
      ),
      lost: buildFailedOutcome("server_lost", "The database was unreachable when this run started"),
      store: (outcome, interruption) => this.#store(claim, outcome, start, interruption),
    });
  }

  async #work(claim: Claim, signal: AbortSignal, start: StartState): Promise<RunOutcome> {
    const { execution, workDir, task, needs } = claim;
    const workspace = await tryOpenWorkspace(this.#options, claim, signal);
    if (workspace instanceof SetupError) return buildFailedOutcome("setup", workspace.message);
    const { db, clock, wakeups, paths, logWakeup, config, waits, steps, skills, calls } = this.#options;
    const { execution_id: id } = execution;
    return await runWorker(this.#options, {
      execution,
      workDir,
      workspace,
      skills: needs?.has_skills === 1
        ? buildRunSkills(skills, await findSkills(db, execution.worker_id))
        : [],
      mcp: JSON.parse(needs?.mcp ?? "{}") as McpServers,
      verify: JSON.parse(task.verify) as Verify | null,
      grant: () => findGrant(db, claim),
      brief: (engine) =>
        buildBriefing(db, claim, engine, {
          ctl: getCtlPath(paths),
          maxPromptBytes: config.limits.max_prompt_bytes,
        }),
      signal,
      listen: (engine) => ({
        ...createUsageRecorder(this.#options, id, engine),
        onWrite: () => wakeups.notify(logWakeup(id)),
        waitedMs: () => waits.getWaitedMs(id),
        onStart: () => this.#onStart(claim, engine, start),
        onStep: (words) => steps.note(id, words),
        ...calls?.watchTools(id, () => clock.now()),
        onSession: (session) => void this.#storeSession(claim, session),
        steering: engine.steers ? createSteering(this.#options, execution) : null,
      }),
    });
  }

  #onStart(claim: Claim, engine: Engine, start: StartState): void {
    // Called again for each further process of the run.
    if (start.at !== null) return;
    start.at = this.#options.clock.now();
    // A built-in engine ends immediately, so its start is stored with the outcome.
    if (engine.external) void this.#storeStart(claim, start.at, start);
  }

  // Not awaited: the database keeps the order of writes, so the outcome always follows the start.
  async #storeStart(claim: Claim, at: number, start: StartState): Promise<void> {
    start.stored = true;
    try {
      await this.#options.db.write(this.#recorder.buildStart(claim, at));
      faultPoint("pid.recorded");
    } catch (error) {
      start.stored = false;
      const { execution_id: id } = claim.execution;
      log.warning("Cannot note that execution {id} started: {error}", { id, error });
    }
  }

  async #storeSession(claim: Claim, session: EngineSession): Promise<void> {
    try {
      await this.#options.db.write(this.#recorder.buildSession(claim, session));
    } catch (error) {
      const { execution_id: id } = claim.execution;
      log.warning("Cannot note the session of execution {id}: {error}", { id, error });
    }
  }

  async #store(
    claim: Claim,
    outcome: RunOutcome,
    start: StartState,
    interruption: Interruption | null,
  ): Promise<void> {
    const { db, waits, steps } = this.#options;
    const { execution_id: id } = claim.execution;
    waits.forget(id);
    steps.forget(id);
    const statements = await this.#recorder.buildEnd(claim, outcome, start, interruption);
    faultPoint("outcome.pre-commit");
    const { won } = await db.write(statements);
    faultPoint("outcome.post-commit");
    if (!won) log.warning("Execution {id} had an outcome already", { id });
  }
}
