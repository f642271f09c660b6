import type { EngineConfig } from "../config/schema.ts";
import { type Usage, USAGE_UNKNOWN } from "../domain/execution.ts";
import type { ToolServer } from "./adapter.ts";
import type { Reset } from "./reset.ts";
import type { RunLog } from "./run_log.ts";
import type { Failure } from "../domain/vocabulary.ts";

/** What the machine gives to every program that is started. */
export interface Machine {
  /** PATH on which programs are looked for. */
  path: string;
  /** The service's own environment, to see which logins are there. */
  inherited: Readonly<Record<string, string | undefined>>;
  /** The file mode mask that the service was started with. */
  umask: number;
  stopGraceMs: number;
  /** Whether the service runs as root. */
  root: boolean;
}

/** A session of an engine to resume. */
export interface EngineSession {
  id: string;
  /** What it had used, where the engine reports totals only. */
  usage: Usage;
}

/** One run, as an engine gets it. */
export interface EngineRun {
  /** SVC_RUN_ID: marks every process of the run. */
  runId: string;
  workDir: string;
  /** The bare instruction. */
  instruction: string;
  /** Instruction with everything that an agent has to know in front. */
  prompt: string;
  /** As `prompt`, with the conversation so far: for a new session in place of a missing one. */
  retelling: string;
  /** The session to resume; null starts a new one. */
  session: EngineSession | null;
  /** The complete environment of the run. */
  env: Record<string, string>;
  /** A private directory for files of this run only. */
  runDir: string;
  /** Where the engine keeps what is this worker's alone; null: in its usual, shared place. */
  stateDir: string | null;
  /** The worker's own arguments for this engine, as typed. */
  extraArgs: string;
  /** The service's tools over MCP, where the run is offered them. */
  tools: ToolServer | null;
  /** JSON Schema that the final text has to fit, for engines that can be held to one; null: any text. */
  schema: object | null;
  log: RunLog;
  /** Takes the engine's events as they come; null where they are not kept. */
  events: RunLog | null;
  /** Aborts when the run has to end. */
  signal: AbortSignal;
  /** Called as soon as the engine is under way; once more for each process that it takes. */
  onStart: () => void;
  /** Called when the engine has reported its session. */
  onSession: (id: string) => void;
}

/** How an engine's run ended. A failed run is an outcome and never an exception. */
export interface EngineOutcome {
  status: "completed" | "failed";
  /** The final text. */
  text: string;
  failure: Failure | "";
  error: string;
  exitCode: number | null;
  usage: Usage;
  /** The engine's own session id, or "" when it has no sessions. */
  sessionId: string;
  /** What that session has used so far, as far as the engine reports totals. */
  sessionUsage: Usage;
  /** When a rate limit is over, as far as the engine says. */
  reset: Reset | null;
}

/** The session part of an outcome for engines without sessions. */
export const NO_SESSION = { sessionId: "", sessionUsage: USAGE_UNKNOWN, reset: null } as const;

/** An outcome without any session: the run of a program that has none, or that never began. */
export function failedOutcome(
  failure: Failure,
  error: string,
  exitCode: number | null = null,
): EngineOutcome {
  return { status: "failed", text: "", failure, error, exitCode, usage: USAGE_UNKNOWN, ...NO_SESSION };
}

/** Whether an engine can be started, and if not, why. */
export interface Availability {
  usable: boolean;
  /** The program's version, "" where it has none or it is not known. */
  version: string;
  /** The program found, or what is missing and how to get it. */
  detail: string;
}

/** A program, or something built in, that does the work of an agent. */
export interface Engine {
  readonly name: string;
  readonly kind: string;
  readonly config: EngineConfig;
  /** Runs outside of this process: it needs an environment, a private directory and a briefing. */
  readonly external: boolean;
  /** Has sessions, events and a state of its own. */
  readonly agent: boolean;
  /** Variables of the service's environment that its runs are given. */
  readonly passes: readonly string[];
  /** Whether it could be started, for the worker whose state directory this is; null: for any. */
  probe(stateDir: string | null): Promise<Availability>;
  start(run: EngineRun): Promise<EngineOutcome>;
}
