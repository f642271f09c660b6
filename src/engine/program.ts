import { concatBytes, GrowingBytes } from "../base/bytes.ts";
import type { EngineConfig } from "./config.ts";
import {
  type Availability,
  buildCompletedOutcome,
  buildFailedOutcome,
  buildSpawnOutcome,
  describeStop,
  type Engine,
  type EngineOutcome,
  type EngineRun,
  type Machine,
} from "./engine.ts";
import type { ProgramAdapter } from "./protocol/adapter.ts";
import { splitArgs } from "./arguments.ts";
import { detectIsolation } from "./process/isolation.ts";
import { findProgram, type ProcessEnd, runProcess, SpawnError } from "./process/process.ts";
import { findProgramServerFault } from "./server_scripts.ts";
import { decodeResult, RESULT_MAX_BYTES } from "./result.ts";

const ERROR_TAIL_BYTES = 2_000;

/**
 * Builds an engine from any program, which reads the instruction on stdin and writes the final text to stdout. All output goes to the
 * log, and exit code 0 is success (contract 7).
 */
export function buildProgramEngine(
  name: string,
  config: EngineConfig,
  machine: Machine,
  adapter: ProgramAdapter,
): Engine {
  const program = () => findProgram(config.command || adapter.program, machine.path);
  const find = (): Availability => {
    try {
      return { usable: true, version: "", detail: program() };
    } catch (error) {
      return { usable: false, version: "", detail: error instanceof Error ? error.message : String(error) };
    }
  };
  return {
    name,
    kind: adapter.kind,
    config,
    external: true,
    agent: false,
    reportsLiveUsage: false,
    reportsCost: false,
    idleMax: 0,
    steers: false,
    inheritedVariables: config.pass_env,
    adapterVariables: [],
    skillFault: null,
    findServerFault: (servers) => findProgramServerFault(name, servers),
    findProblem() {
      const { usable, detail } = find();
      return usable ? null : detail;
    },
    probe: () => Promise.resolve(find()),
    start: (run) => runProgram(run, program, config, machine),
  };
}

async function runProgram(
  run: EngineRun,
  program: () => string,
  config: EngineConfig,
  machine: Machine,
): Promise<EngineOutcome> {
  const output = new Output();
  try {
    const end = await runProcess({
      runId: run.runId,
      command: program(),
      args: [...config.args, ...splitArgs(run.extraArgs)],
      cwd: run.workDir,
      env: run.env,
      stdin: run.instruction,
      isolation: await detectIsolation(),
      box: run.box,
      umask: machine.umask,
      timeoutMs: config.timeout,
      idleTimeoutMs: config.idle_timeout,
      stopGraceMs: machine.stopGraceMs,
      signal: run.signal,
      waitedMs: run.waitedMs,
      onStart: run.onStart,
      onOutput(stream, chunk) {
        output.add(stream, chunk);
        run.log.write(chunk);
      },
    });
    return { ...buildOutcome(end, output, config), engineUse: "acted" };
  } catch (error) {
    if (error instanceof SpawnError) {
      return buildSpawnOutcome(error, `Cannot start the program: ${error.message}`);
    }
    throw error;
  }
}

function buildOutcome(end: ProcessEnd, output: Output, config: EngineConfig): EngineOutcome {
  const text = output.text();
  if (end.reason !== "exited") {
    return { ...buildFailedOutcome(...describeStop(end.reason, config), end.code), text };
  }
  if (end.code !== 0) {
    const last = output.formatLastLines();
    return {
      ...buildFailedOutcome("exit_code", `exit code ${end.code}${last === "" ? "" : `: ${last}`}`, end.code),
      text,
    };
  }
  return buildCompletedOutcome(text);
}

/** Keeps the start of stdout and the end of stderr. */
class Output {
  readonly #stdout = new GrowingBytes();
  #stdoutBytes = 0;
  #stderr: Uint8Array = new Uint8Array();

  add(stream: "stdout" | "stderr", chunk: Uint8Array): void {
    if (stream === "stderr") {
      this.#stderr = concatBytes([this.#stderr, chunk.subarray(-ERROR_TAIL_BYTES)]).slice(-ERROR_TAIL_BYTES);
      return;
    }
    this.#stdoutBytes += chunk.length;
    this.#stdout.append(chunk.subarray(0, RESULT_MAX_BYTES - this.#stdout.size));
  }

  text(): string {
    return decodeResult(this.#stdout.view(), this.#stdoutBytes);
  }

  /** Formats the last lines of stderr as one line. */
  formatLastLines(): string {
    const lines = new TextDecoder().decode(this.#stderr).replaceAll("\0", "\ufffd").trim().split("\n");
    return lines.slice(-3).join(" | ").slice(-500);
  }
}
