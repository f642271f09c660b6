import { dirname } from "node:path";
import { type Place, UnsafePathError } from "../base/files/open_directory.ts";
import { makePlainDir, readPlain, writePlain } from "../base/files/plain_file.ts";
import { buildRelayVariables } from "../base/proxy.ts";
import { getStateRoot, isWithin } from "../base/paths.ts";
import {
  type Adapter,
  type AgentCommand,
  GATEWAY_KEY,
  type ModelGateway,
  type Order,
} from "./protocol/adapter.ts";
import { splitArgs } from "./arguments.ts";
import type { EngineConfig } from "./config.ts";
import type { EngineRun, Machine } from "./engine.ts";
import { isFile } from "./process/isolation.ts";
import { SpawnError } from "./process/process.ts";
import { buildServerScripts, buildWorkerServers } from "./server_scripts.ts";
import { getInputDir, getOutputDir, placeInRunDir } from "./run_dir.ts";
import { getSkillsDir } from "./process/skill_files.ts";

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

/** Returns the id of a new session, or "" if the engine chooses it. */
export function createSessionId(adapter: Adapter): string {
  return adapter.choosesSessionId ? crypto.randomUUID() : "";
}

/** Builds the input of an adapter. */
export function buildOrder({ config, machine }: AgentSetup, run: EngineRun, request: TurnRequest): Order {
  return {
    ...request,
    workDir: run.workDir,
    inputDir: getInputDir(run.runDir),
    outputDir: getOutputDir(run.runDir),
    stateDir: run.stateDir,
    ctl: run.env.SVC_CTL ?? "svc",
    model: config.model,
    permissions: config.permissions,
    askTimeoutMs: config.ask_timeout,
    mask: (text) => run.log.maskText(text),
    extraArgs: [...config.args, ...splitArgs(run.extraArgs)],
    root: machine.root,
    env: run.env,
    tools: run.tools,
    servers: buildWorkerServers(run),
    skills: run.skills.length === 0
      ? null
      : { dir: getSkillsDir(run.runDir), names: run.skills.map(({ name }) => name) },
    gateway: buildGateway(config, machine, run),
    schema: run.schema,
  };
}

function buildGateway(
  { gateway: name }: EngineConfig,
  { gateways }: Machine,
  { env }: EngineRun,
): ModelGateway | null {
  const kind = name === undefined ? undefined : gateways[name];
  if (kind === undefined) return null;
  return { kind, url: `${env.SVC_URL}/gateway/${name}`, key: env[GATEWAY_KEY] ?? "" };
}

/** Builds the command of a process, with the scripts of the worker's MCP servers. */
export function buildCommand(
  { buildCommand: build }: { buildCommand: (order: Order) => AgentCommand },
  order: Order,
  run: EngineRun,
): AgentCommand {
  const command = build(order);
  return { ...command, files: [...command.files ?? [], ...buildServerScripts(run)] };
}

/**
 * Builds the environment of a process. The adapter's variables override the run's variables. The operator's and the worker's variables
 * override both, except PATH, SVC_*, and in a box HOME and the variables of its proxy.
 */
export function buildEnvironment(
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
    ...run.ownEnv,
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
export function writeFiles(command: AgentCommand, run: Pick<EngineRun, "runDir" | "stateDir">): void {
  const { stateDir } = run;
  try {
    if (stateDir !== null) {
      Deno.mkdirSync(getStateRoot(stateDir), { recursive: true, mode: 0o700 });
      makePlainDir({ root: getStateRoot(stateDir), path: stateDir });
    }
    for (const { path, content, executable } of command.files ?? []) {
      const place = findPlace(path, run);
      makePlainDir({ ...place, path: dirname(path) });
      const present = readPlain(place, FILE_MAX_BYTES);
      const text = content(present);
      // In place, because a box binds the file itself.
      if (text !== present) writePlain(place, text, executable ? 0o700 : 0o600);
    }
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new SpawnError(
      `its files cannot be written: ${words}`,
      error instanceof UnsafePathError ? "isolation" : "spawn_failed",
    );
  }
}

function findPlace(path: string, { runDir, stateDir }: Pick<EngineRun, "runDir" | "stateDir">): Place {
  const isState = stateDir !== null && isWithin(path, stateDir);
  return isState ? { root: getStateRoot(stateDir), path } : placeInRunDir(path, runDir);
}
