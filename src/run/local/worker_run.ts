// Runs one order of a worker, in the service or on a runner.
import type { Verify } from "../../domain/work/command.ts";
import type { Usage } from "../../domain/work/execution.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { ProviderWindow } from "../../engine/protocol/adapter.ts";
import type { Catalog } from "../../engine/catalog.ts";
import {
  buildFailedOutcome,
  type Engine,
  type EngineOutcome,
  type EngineSession,
} from "../../engine/engine.ts";
import { type EngineRunOptions, runEngine } from "./engine_run.ts";
import type { Grant } from "../environment.ts";
import type { Briefing } from "../launch_options.ts";
import type { RunOutcome } from "../recorder.ts";
import { findWorkDirProblem } from "./work_dir.ts";

export interface RunOrder {
  /** The run, with the name of its engine. */
  execution: RunIdentity & { engine: string; instruction: string };
  workDir: string;
  /** The check of the work, or null. */
  verify: Verify | null;
  /** Like `brief`, called only for an engine outside this process. */
  grant: () => Promise<Grant>;
  brief: (engine: Engine) => Promise<Briefing>;
}

/** Receives the reports of a run in progress. */
interface RunReports {
  onWrite: () => void;
  /** How long the run has waited for a person so far, in ms. */
  waitedMs: () => number;
  /** Called when the engine has started, with its pid where it has one, and again for each further process. */
  onStart: (engine: Engine, pid?: number) => void;
  onStep: (words: string) => void;
  onSession: (session: EngineSession) => void;
  onUsage: (usage: Usage, engine: Engine) => void;
  onWindows: (windows: ProviderWindow[], engine: Engine) => void;
}

interface RunHandlers {
  signal: AbortSignal;
  reports: RunReports;
}

/** Runs an order to its outcome. A failed run is an outcome. Throws when the run cannot be prepared. */
export async function runWorker(
  options: EngineRunOptions & { engines: Catalog },
  order: RunOrder,
  { signal, reports }: RunHandlers,
): Promise<RunOutcome> {
  const { execution, workDir, verify, grant, brief } = order;
  const engine = options.engines.find(execution.engine);
  if (engine === null) {
    return buildFailedOutcome("spawn_failed", `Cannot start: no engine is called ${execution.engine}`);
  }
  const problem = findWorkDirProblem(workDir, options.paths);
  if (problem !== null) {
    return buildFailedOutcome("spawn_failed", `Cannot use the work directory ${workDir}: ${problem}`);
  }
  return await runEngine(options, {
    identity: execution,
    engine,
    stateOwner: execution.worker_id,
    workDir,
    instruction: execution.instruction,
    schema: null,
    verify,
    signal,
    grant,
    brief: () => brief(engine),
    opening: `[${engine.name} starts in ${workDir}, attempt ${execution.attempt}]`,
    closing: formatLastLine,
    onWrite: reports.onWrite,
    waitedMs: reports.waitedMs,
    onStart: (pid) => reports.onStart(engine, pid),
    onStep: reports.onStep,
    onSession: reports.onSession,
    onUsage: (usage) => reports.onUsage(usage, engine),
    onWindows: (windows) => reports.onWindows(windows, engine),
  });
}

function formatLastLine(outcome: EngineOutcome): string {
  if (outcome.status === "completed") return "[completed]";
  return `[failed: ${outcome.failure}${outcome.error === "" ? "" : `, ${outcome.error}`}]`;
}
