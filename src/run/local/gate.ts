// Runs the gate of a schedule: a command that decides whether the task runs (contract 15).
import type { Gate } from "../../domain/work/command.ts";
import type { Wakeups } from "../../base/wakeups.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { concatBytes } from "../../base/bytes.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createId } from "../../base/id.ts";
import { createLogger } from "../../base/log.ts";
import { getRunDir } from "../../base/paths.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { Engine } from "../../engine/engine.ts";
import { SpawnError } from "../../engine/process/process.ts";
import { maskText } from "../../engine/process/masked_text.ts";
import { makeRunDir, removeRunDir } from "../../engine/run_dir.ts";
import { stripEscapes } from "../../engine/protocol/transcript.ts";
import type { Database } from "../../store/db/database.ts";
import { isGateWanted } from "../../store/work/occurrence.ts";
import { findTask } from "../../store/work/task.ts";
import { findGrant } from "../briefing.ts";
import { type Claim, startGatedRun } from "../claim.ts";
import { addShell, decodeText, removeKeys, runCommand } from "./command.ts";
import type { EngineRunOptions } from "./engine_run.ts";
import { buildGateEnd, type GateVerdict, storeGateEnd } from "./gate_end.ts";
import type { Rules } from "../ending.ts";
import { OutcomeWriter } from "../outcome_writer.ts";
import type { Interruption } from "../../domain/work/interruption.ts";
import { RunRegistry } from "../run_registry.ts";
import { SetupError } from "../variables.ts";
import { findWorkDirProblem } from "./work_dir.ts";
import { tryOpenWorkspace, type Workspace, type WorkspaceOptions } from "./workspaces.ts";

const log = createLogger("gate");

interface GateOptions extends EngineRunOptions, Omit<WorkspaceOptions, "paths" | "umask" | "config"> {
  db: Database;
  wakeups: Wakeups;
  engines: Catalog;
  rules: Rules;
}

/** The exit code of a gate, or null with the reason in words. */
interface GateAnswer {
  code: number | null;
  words: string;
  /** The start of its stdout. */
  output: string;
  /** The end of its output, for an error. */
  tail: string;
}

/** Size limits of the gate output for the agent, and for an error. */
const GATE_OUTPUT_MAX_BYTES = 64 * 1024;
const ERROR_TAIL_MAX_CHARACTERS = 500;
const WANTED_POLL_MS = 1_000;
const GO = 0;
const SKIP = 1;

/** Runs the gates of schedules. A gate has the ids of the execution that it may start. */
export class Gates {
  readonly #options: GateOptions;
  readonly runs: RunRegistry;

  constructor(options: GateOptions) {
    const { db, clock } = options;
    this.#options = options;
    this.runs = new RunRegistry(clock, new OutcomeWriter(clock, () => db.broken !== null));
  }

  /**
   * Runs the gate of a claim and stores its answer. Returns the claim with the gate's output appended to the instruction when its task
   * runs now, else null. Never throws.
   */
  async pass(claim: Claim, gate: Gate): Promise<Claim | null> {
    let passed: Claim | null = null;
    await this.runs.start<GateAnswer>({
      identity: claim.execution,
      work: (signal) => this.#ask(claim, gate, signal),
      broken: buildRefusal("the service could not prepare it. See the service's log"),
      store: async (answer, interruption) => {
        passed = await this.#store(appendOutput(claim, gate, answer), answer, interruption);
      },
    });
    return passed;
  }

  async #ask(claim: Claim, gate: Gate, signal: AbortSignal): Promise<GateAnswer> {
    const { engines, paths } = this.#options;
    const { execution, workDir } = claim;
    const engine = engines.find(execution.engine);
    if (engine === null) return buildRefusal(`no engine is called ${execution.engine}`);
    const workspace = await tryOpenWorkspace(this.#options, claim, signal);
    if (workspace instanceof SetupError) return buildRefusal(workspace.message);
    const problem = workspace === null ? findWorkDirProblem(workDir, paths) : null;
    if (problem !== null) return buildRefusal(`the work directory ${workDir} cannot be used: ${problem}`);
    const ended = new AbortController();
    void this.#watch(claim, ended.signal);
    const runDir = getRunDir(paths, createId());
    try {
      return await this.#run({ claim, gate, engine, runDir, workspace, signal });
    } catch (error) {
      if (!(error instanceof SpawnError)) throw error;
      return buildRefusal(`it could not be started: ${error.message}`);
    } finally {
      ended.abort();
      void removeRunDir(runDir);
    }
  }

  async #run({ claim, gate, engine, runDir, workspace, signal }: {
    claim: Claim;
    gate: Gate;
    engine: Engine;
    runDir: string;
    workspace: Workspace | null;
    signal: AbortSignal;
  }): Promise<GateAnswer> {
    const { umask, config } = this.#options;
    const { execution: { run_id: runId, worker_id: workerId }, workDir } = claim;
    const { env, secrets } = await this.#buildEnvironment(claim, engine, runDir);
    makeRunDir(runDir);
    const place = {
      workerId,
      engine,
      workDir,
      runDir,
      stateDir: null,
      messageId: "",
      ...workspace && { objects: workspace.objects },
    };
    const box = await this.#options.planBox(place);
    const stopGraceMs = config.limits.stop_grace;
    const context = { runId, engine, workDir, box, env, umask, stopGraceMs, signal };
    if (box !== null) env.HOME = box.home;
    let printed: Uint8Array = new Uint8Array();
    const { code, words, tail } = await runCommand(context, {
      words: addShell(engine, gate.command),
      timeout_ms: gate.timeout_ms,
      onOutput(stream, chunk) {
        if (stream === "stderr" || printed.length > GATE_OUTPUT_MAX_BYTES) return;
        printed = concatBytes([printed, chunk.subarray(0, GATE_OUTPUT_MAX_BYTES + 1 - printed.length)]);
      },
    });
    const cut = printed.length > GATE_OUTPUT_MAX_BYTES ? "\n[cut after 64 KiB]" : "";
    const output = decodeText(printed.subarray(0, GATE_OUTPUT_MAX_BYTES)) + cut;
    return {
      code,
      words,
      output: maskText(secrets, stripEscapes(output)),
      tail: maskText(secrets, stripEscapes(tail)).trim().slice(-ERROR_TAIL_MAX_CHARACTERS),
    };
  }

  // Like a check, a gate gets the run's environment without token and keys (contract 13). An engine inside this process has none.
  async #buildEnvironment(claim: Claim, engine: Engine, runDir: string) {
    const { db, environmentOf } = this.#options;
    const { execution: identity, workDir } = claim;
    const context = { runId: identity.run_id, workDir };
    if (!engine.external) {
      return { env: removeKeys({}, { secrets: [], secretNames: [] }, context), secrets: [] };
    }
    const grant = await findGrant(db, claim);
    const request = { identity, grant, engine, runDir, contextPath: "", withoutSecrets: true } as const;
    const { env, ...keys } = await environmentOf(request);
    return { env: removeKeys(env, keys, context), secrets: keys.secrets };
  }

  // Ends the gate when its task is cancelled. A wakeup reports the change immediately, and the poll within a second.
  async #watch({ execution: { task_id, execution_id } }: Claim, ended: AbortSignal): Promise<void> {
    const { db, wakeups, clock } = this.#options;
    const wakeup = wakeups.listen(WAKEUP.gate);
    try {
      while (!ended.aborted) {
        const wanted = await isGateWanted(db, task_id, execution_id).catch(() => true);
        if (!wanted && !ended.aborted) return void this.runs.interrupt({ execution_id }, "cancelled");
        await wakeup.next(clock, WANTED_POLL_MS, ended);
      }
    } finally {
      wakeup.close();
    }
  }

  async #store(claim: Claim, answer: GateAnswer, interruption: Interruption | null): Promise<Claim | null> {
    const { db, clock, rules } = this.#options;
    const { execution } = claim;
    const now = clock.now();
    const passed = answer.code === GO;
    const statements = passed ? startGatedRun(execution, now) : buildGateEnd(
      execution,
      classifyAnswer(answer, interruption),
      await findTask(db, execution.task_id),
      rules,
      now,
    );
    faultPoint("gate.pre-commit");
    const won = await storeGateEnd(db, execution, statements, now);
    if (!won) log.info("The gate of task {id} ended after its task was changed", { id: execution.task_id });
    return won && passed ? claim : null;
  }
}

function buildRefusal(words: string): GateAnswer {
  return { code: null, words, output: "", tail: "" };
}

function appendOutput(claim: Claim, { command }: Gate, { output }: GateAnswer): Claim {
  if (output.trim() === "") return claim;
  const words = `${JSON.stringify(command)} ran before this and let it through. It printed:`;
  const instruction = `${claim.execution.instruction}\n\n${words}\n\n${output}`;
  return { ...claim, execution: { ...claim.execution, instruction } };
}

function classifyAnswer({ code, words, tail }: GateAnswer, interruption: Interruption | null): GateVerdict {
  if (code === SKIP) return { kind: "skip", exit: code };
  if (code === null && interruption !== null) {
    return { kind: interruption === "cancelled" ? "replaced" : "again" };
  }
  return { kind: "fail", exit: code, error: tail === "" ? words : `${words}: ${tail}` };
}
