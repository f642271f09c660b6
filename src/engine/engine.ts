import type { EngineConfig } from "../config.ts";
import type { Failure, Usage } from "../domain/execution.ts";
import type { RunLog } from "./run_log.ts";

/** One run, as an engine gets it. */
export interface EngineRun {
  /** SVC_RUN_ID: marks every process of the run. */
  runId: string;
  workDir: string;
  /** The bare instruction. */
  instruction: string;
  /** Instruction with everything that an agent has to know in front. */
  prompt: string;
  /** The complete environment of the run. */
  env: Record<string, string>;
  /** A private directory for files of this run only. */
  runDir: string;
  /** The worker's own arguments for this engine, as typed. */
  extraArgs: string;
  log: RunLog;
  /** Aborts when the run has to end. */
  signal: AbortSignal;
  /** Called once, as soon as the engine is under way. */
  onStart: () => void;
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
}

/** Whether an engine can be started, and if not, why. */
export interface Availability {
  usable: boolean;
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
  probe(): Promise<Availability>;
  start(run: EngineRun): Promise<EngineOutcome>;
}
