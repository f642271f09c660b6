import { dirname } from "node:path";
import { buildRelayVariables } from "../base/proxy.ts";
import { readPlain, writePlain } from "../base/plain_file.ts";
import type { Adapter, AgentCommand, Order } from "./protocol/adapter.ts";
import { splitArgs } from "./arguments.ts";
import type { EngineConfig } from "./config.ts";
import type { EngineRun, Machine } from "./engine.ts";
import { isFile } from "./process/isolation.ts";
import { SpawnError } from "./process/process.ts";

export interface AgentSetup {
  config: EngineConfig;
  machine: Machine;
  adapter: Adapter;
}

/** The prompt of a turn, and the session to create or resume. */
export interface TurnRequest {
  sessionId: string;
  resume: boolean;
  prompt: string;
}

/** Builds the input of an adapter. */
export function buildOrder({ config, machine }: AgentSetup, run: EngineRun, request: TurnRequest): Order {
  return {
    ...request,
    workDir: run.workDir,
    runDir: run.runDir,
    stateDir: run.stateDir,
    ctl: run.env.SVC_CTL ?? "svc",
    model: config.model,
    permissions: config.permissions,
    extraArgs: [...config.args, ...splitArgs(run.extraArgs)],
    root: machine.root,
    env: run.env,
    tools: run.tools,
    schema: run.schema,
  };
}

/**
 * Builds the environment of a process. The adapter's variables override the run's variables. The operator's variables override both, except
 * PATH, SVC_* and, in a box, HOME and the variables of its proxy.
 */
export function buildEnvironment(
  config: EngineConfig,
  run: EngineRun,
  command: AgentCommand,
): Record<string, string> {
  // In a box only its own home exists.
  const isFixed = (name: string) =>
    name === "PATH" || name.startsWith("SVC_") || name === "HOME" && run.box !== null;
  const fixed = Object.entries(run.env).filter(([name]) => isFixed(name));
  return {
    ...run.env,
    ...SHELL,
    ...command.env,
    ...config.env,
    ...command.fixedEnv,
    ...Object.fromEntries(fixed),
    ...(run.box === null || run.box.network === "host" ? {} : buildRelayVariables(run.box.network.port)),
  };
}

// Engines may run their tools with $SHELL, and no engine supports every shell (facts, engines 2.10).
const bash = ["/bin/bash", "/usr/bin/bash"].find(isFile);
const SHELL = bash === undefined ? {} : { SHELL: bash };

// Size limit for settings files, because agents may have changed them.
const FILE_MAX_BYTES = 1024 * 1024;

/** Writes the files that an agent needs before it starts. Throws SpawnError. */
export function writeFiles(command: AgentCommand, stateDir: string | null): void {
  try {
    if (stateDir !== null) Deno.mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    for (const { path, content, executable } of command.files ?? []) {
      Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const present = readPlain(path, FILE_MAX_BYTES);
      const text = content(present);
      if (text !== present) writePlain(path, text, executable ? 0o700 : 0o600);
    }
  } catch (error) {
    throw new SpawnError(`its files cannot be written: ${error instanceof Error ? error.message : error}`);
  }
}
