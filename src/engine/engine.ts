import type { EngineConfig } from "./config.ts";
import { type Usage, USAGE_UNKNOWN } from "../domain/work/execution.ts";
import type { McpServers } from "../domain/workers/mcp_server.ts";
import type { ProviderWindow, RunServer, ToolServer } from "./protocol/adapter.ts";
import type { Reset } from "./protocol/reset.ts";
import type { Box } from "./process/box.ts";
import type { RunSkill } from "./process/skill_files.ts";
import type { ProcessEnd, SpawnError } from "./process/process.ts";
import type { RunLog } from "./process/run_log.ts";
import type { GatewayKeys } from "./gateway_keys.ts";
import type { KeepAlive } from "./keep_alive.ts";
import type { EngineUse, Failure, GatewayKind } from "../domain/call/vocabulary.ts";

/** The machine that runs the engines. */
export interface Machine {
  path: string;
  /** The service's environment, which shows the available logins. */
  inherited: Readonly<Record<string, string | undefined>>;
  /** The umask that the service was started with. */
  umask: number;
  stopGraceMs: number;
  root: boolean;
  /** The kind of each gateway. */
  gateways: Readonly<Record<string, GatewayKind>>;
  /** The keys of processes that stay open. */
  gatewayKeys: GatewayKeys;
  /** Shared by all engines without `warm` settings. null: their processes end after each turn. */
  keepAlive: KeepAlive | null;
  /** The number of spare processes per worker of an engine whose `warm` settings have none. */
  spare: number;
  /**
   * Describes the tools of a run with these scopes, for a process that has no run yet. null: this machine cannot, and has no spare
   * processes.
   */
  describeTools: ((rights: string) => Promise<string>) | null;
}

export interface EngineSession {
  id: string;
  /** The totals before this run, if the engine reports only totals. */
  usage: Usage;
}

export interface EngineRun {
  /** SVC_RUN_ID: marks every process of the run. */
  runId: string;
  workDir: string;
  /** Whether the work directory belongs to one conversation or task, so that no process can wait in it for another one. */
  hasWorktree?: boolean;
  instruction: string;
  /** The briefing, followed by the instruction. */
  prompt: string;
  /** `prompt` with the conversation so far, for a new session instead of a lost one. */
  retelling: string;
  /** The session to resume, or null to start a new one. */
  session: EngineSession | null;
  /** The complete environment of the run. */
  env: Record<string, string>;
  /** The variables of the configuration and the worker. They override those of the adapter. */
  ownEnv: Record<string, string>;
  /** A private directory for this run. */
  runDir: string;
  /** Directory of this worker's engine state, or null for the shared default. */
  stateDir: string | null;
  /** The box of the run, or null for none. A program outside this process needs it. */
  box: Box | null;
  /** The worker's arguments for this engine, as typed. */
  extraArgs: string;
  /** The service's tools over MCP, or null for none. */
  tools: ToolServer | null;
  /** The MCP servers of the worker. Their values are in `env`. */
  servers: readonly RunServer[];
  /** The skills of the worker. */
  skills: readonly RunSkill[];
  /** The scopes of the run's token, which decide the list of tools. */
  rights: string;
  /** JSON Schema of the final text, for engines that support schemas. null allows any text. */
  schema: object | null;
  log: RunLog;
  /** The file for the engine's raw events, or null if they are not kept. */
  events: RunLog | null;
  /** Words of people for the running turn. null: the run takes none. */
  steering: Steering | null;
  /** Aborts when the run has to end. */
  signal: AbortSignal;
  /** How long the run has waited for a person so far, in ms. This time does not count as idle. */
  waitedMs: () => number;
  /** Called with the pid of each process that the engine starts. An engine without a process calls it once without a pid. */
  onStart: (pid?: number) => void;
  /** Called with the usage of the run so far, if the engine reports it during the run. */
  onUsage: (usage: Usage) => void;
  /** Called with the provider's windows, if the engine reports them. */
  onWindows: (windows: ProviderWindow[]) => void;
  onStep?: (tool: string, input: string) => void;
  onStepEnd?: (isOk: boolean) => void;
  onSession: (id: string) => void;
}

/** Words that people send to a run in progress. */
export interface Steering {
  /** Called when a turn can take words; `deliver` writes them to the agent. null: it cannot take any more. */
  setTarget(deliver: ((id: string, words: string) => void) | null): void;
  /** Called when the agent has taken or refused the words. */
  onAnswer(id: string, taken: boolean): void;
}

/** The outcome of an engine's run. A failed run is an outcome, never an exception. */
export interface EngineOutcome {
  status: "completed" | "failed";
  text: string;
  failure: Failure | "";
  error: string;
  exitCode: number | null;
  usage: Usage;
  /** "" when unknown, and when the agent did nothing. */
  engineUse: EngineUse | "";
  /** The engine's session id, or "" when it has none. */
  sessionId: string;
  /** Totals of that session, if the engine reports them. */
  sessionUsage: Usage;
  /** When a rate limit ends, if the engine says so. */
  reset: Reset | null;
}

const NO_SESSION = { engineUse: "", sessionId: "", sessionUsage: USAGE_UNKNOWN, reset: null } as const;

/** Builds a failed outcome without a session, for a program or a run that never started. */
export function buildFailedOutcome(
  failure: Failure,
  error: string,
  exitCode: number | null = null,
): EngineOutcome {
  return { status: "failed", text: "", failure, error, exitCode, usage: USAGE_UNKNOWN, ...NO_SESSION };
}

/** Builds the outcome of a run whose program did not start. */
export function buildSpawnOutcome({ failure }: SpawnError, error: string): EngineOutcome {
  const engineUse = failure === "spawn_failed" ? "unusable" : "";
  return { ...buildFailedOutcome(failure, error), engineUse };
}

/** Builds the outcome of a successful run without a session. */
export function buildCompletedOutcome(text: string): EngineOutcome {
  return { ...buildFailedOutcome("exit_code", "", 0), status: "completed", text, failure: "" };
}

/** Returns the failure and its message for a run that the service ended by a limit or a cancel (contract 3, Execution). */
export function describeStop(reason: ProcessEnd["reason"], config: EngineConfig): [Failure, string] {
  if (reason === "timeout") {
    return ["timeout", `ran longer than ${config.timeout / 1000} s (engines.<name>.timeout)`];
  }
  if (reason === "idle_timeout") {
    return ["idle_timeout", `said nothing for ${config.idle_timeout / 1000} s (engines.<name>.idle_timeout)`];
  }
  return ["cancelled", "the run was ended"];
}

export interface Availability {
  usable: boolean;
  /** The program's version, or "" when unknown. */
  version: string;
  /** The path of the program, or what is missing and how to get it. */
  detail: string;
}

/** The port of all engines: agent CLIs, other programs and built-in engines. */
export interface Engine {
  readonly name: string;
  readonly kind: string;
  readonly config: EngineConfig;
  /** Whether the engine is a program, which needs an environment, a private directory and a briefing. */
  readonly external: boolean;
  /** Whether the engine has sessions, events and a state directory. */
  readonly agent: boolean;
  /** Whether the engine reports its usage during the run. */
  readonly reportsLiveUsage: boolean;
  /** Whether the engine reports its cost in US dollars. */
  readonly reportsCost: boolean;
  /** The maximum of idle processes; 0: each process ends after its turn. */
  readonly idleMax: number;
  /** Whether a running turn can take further words. */
  readonly steers: boolean;
  /** Variables of the service's environment that its runs get. */
  readonly inheritedVariables: readonly string[];
  /** Variables that its adapter sets for each run. A worker cannot set them. */
  readonly adapterVariables: readonly string[];
  /** Returns why its runs cannot have one of these MCP servers of the worker, or null. */
  findServerFault(servers: McpServers): string | null;
  /** Why its runs cannot have skills of the worker, or null. */
  readonly skillFault: string | null;
  /** Returns what prevents a start for the worker with this state directory, or null. Starts no program, so it is quick. */
  findProblem(stateDir: string | null): string | null;
  /** Checks whether the engine can be started for the worker with this state directory. null means any worker. */
  probe(stateDir: string | null): Promise<Availability>;
  start(run: EngineRun): Promise<EngineOutcome>;
  /** Ends the idle processes of this worker, and those in a turn after it. "" means every process. Resolves when the idle ones have ended. */
  release?(workerId: string | null): Promise<void>;
}
