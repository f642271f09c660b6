import type { Clock } from "../../base/clock.ts";
import type { VerifyResult } from "../../domain/work/command.ts";
import { formatStep } from "../../domain/work/progress.ts";
import type { Config } from "../../config/schema.ts";
import { addUsage, USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import {
  buildFailedOutcome,
  type Engine,
  type EngineOutcome,
  type EngineRun,
  type EngineSession,
} from "../../engine/engine.ts";
import { SpawnError } from "../../engine/process/process.ts";
import { getTempDir, removeRunDir } from "../../engine/run_dir.ts";
import { RunLog } from "../../engine/process/run_log.ts";
import { UnsafePathError } from "../../base/files/open_directory.ts";
import { createId } from "../../base/id.ts";
import { type DataPaths, getEventsPath, getLogPath, getRunDir } from "../../base/paths.ts";
import { removeKeys } from "./command.ts";
import type { BoxPlanner } from "../box.ts";
import type { EnvironmentBuilder } from "../environment.ts";
import { type LaunchRequest, prepareLaunch } from "../launch_options.ts";
import type { RunMasks } from "../run_masks.ts";
import { maskOutcome } from "../secrets.ts";
import { SetupError } from "../variables.ts";
import { verifyRun } from "./verify.ts";
import type { TreeEnd } from "../../store/work/tree.ts";
import type { Workspace } from "./workspaces.ts";

export interface EngineRunOptions {
  clock: Clock;
  config: Pick<Config, "limits">;
  paths: DataPaths;
  environmentOf: EnvironmentBuilder;
  planBox: BoxPlanner;
  /** The umask that the service was started with. */
  umask: number;
  /** Holds the secrets of runs in progress; absent on a runner. */
  masks?: RunMasks;
}

/** Receives the reports of a run in progress. */
export interface RunReports
  extends Pick<EngineRun, "waitedMs" | "onStart" | "onUsage" | "onWindows" | "steering"> {
  /** Called after each write to a log. */
  onWrite: () => void;
  /** Called with a description of the agent's next step. */
  onStep: (words: string) => void;
  /** Called with the agent's next tool and its arguments, masked, for the trace of the run. */
  onTool?: (name: string, input: string) => void;
  onToolEnd?: (isOk: boolean) => void;
  /** Called when the engine has reported its session, with the totals before this run. */
  onSession: (session: EngineSession) => void;
}

interface EngineRequest
  extends Omit<LaunchRequest, "workspace">, Pick<EngineRun, "workDir" | "instruction" | "schema" | "signal"> {
  /** The worktree of the run, or null. */
  workspace?: Workspace | null;
  /** The log's first line. */
  opening: string;
  /** Returns the log's last line, or null for none. */
  closing: (outcome: EngineOutcome) => string | null;
  reports: Partial<RunReports>;
}

/**
 * Runs an engine once with logs, environment and a private directory, and masks secrets in everything that is stored. When this resolves,
 * both logs are on disk. Throws when the service cannot prepare the run.
 */
export async function runEngine(
  options: EngineRunOptions,
  request: EngineRequest,
): Promise<EngineOutcome & { verify?: VerifyResult; tree?: TreeEnd }> {
  const { identity, engine, signal } = request;
  const reports = { ...NO_REPORTS, ...request.reports };
  // A run may call this several times, so each call has its own directory.
  const runDir = getRunDir(options.paths, createId());
  try {
    const { log, events } = openLogs(options, request, reports.onWrite);
    try {
      const { secrets, secretNames, ...launchOptions } = await prepareLaunch(
        options,
        { ...request, lifeMs: computeLifeMs(request) },
        runDir,
      );
      for (const secret of secrets) for (const file of [log, events]) file?.mask(secret);
      options.masks?.set(identity.execution_id, secrets);
      log.line(request.opening);
      const run: EngineRun = {
        runId: identity.run_id,
        workDir: request.workDir,
        hasWorktree: (request.workspace ?? null) !== null,
        instruction: request.instruction,
        schema: request.schema,
        ...launchOptions,
        log,
        events,
        signal,
        ...reports,
        onStep: (tool, input) => {
          const [name, words] = [log.maskText(tool), log.maskText(input)];
          reports.onStep(formatStep(name, words));
          reports.onTool?.(name, words);
        },
        onStepEnd: (isOk) => reports.onToolEnd?.(isOk),
        onSession: (id) => reports.onSession(resolveSession(launchOptions.session, id)),
      };
      const outcome = signal.aborted
        ? ENDED_EARLY
        : await runChecked(options, request, run, { secrets, secretNames });
      const tree = await takeOver(options, request, run, { secrets, secretNames });
      const masked = maskOutcome(log, outcome);
      const closing = request.closing(masked);
      if (closing !== null) log.line(closing);
      return tree === undefined ? masked : { ...masked, tree };
    } catch (error) {
      const failed = findFailure(error, engine);
      if (failed === null) throw error;
      log.line(request.closing(failed) ?? `[${failed.error}]`);
      return failed;
    } finally {
      options.masks?.delete(identity.execution_id);
      // The logs must be on disk before the outcome, so that a finished run has a complete log (reliability DUR-9).
      await Promise.all([log.close(), events?.close()]);
    }
  } finally {
    if (engine.external || request.verify || request.workspace) void removeRunDir(runDir);
  }
}

// The agent and its check have ended, so that what is in the worktree is the result of the run.
async function takeOver(
  { config, umask }: EngineRunOptions,
  { engine, workspace = null }: EngineRequest,
  run: EngineRun,
  keys: { secrets: readonly string[]; secretNames: readonly string[] },
): Promise<TreeEnd | undefined> {
  const { runId, workDir, box, log, runDir } = run;
  return await workspace?.takeOver({
    ...{ runId, engine, workDir, box, umask },
    env: removeKeys(run.env, keys, run),
    stopGraceMs: config.limits.stop_grace,
    tempDir: getTempDir(runDir),
    note: (line) => log.line(line),
  });
}

/** Returns the outcome of a run that could not start, or null for an unexpected error. */
function findFailure(error: unknown, { name }: Engine): EngineOutcome | null {
  if (error instanceof SetupError) return buildFailedOutcome("setup", error.message);
  if (error instanceof SpawnError) {
    return buildFailedOutcome(error.failure, `Cannot start ${name}: ${error.message}`);
  }
  return error instanceof UnsafePathError
    ? buildFailedOutcome("isolation", `Cannot start ${name}: ${error.message}`)
    : null;
}

// After each failed check the engine runs once more with the same token.
function computeLifeMs({ engine, verify }: EngineRequest): number | undefined {
  return verify ? (engine.config.timeout + verify.timeout_ms) * (verify.attempts + 1) : undefined;
}

async function runChecked(
  { config, umask }: EngineRunOptions,
  { engine, verify = null }: EngineRequest,
  run: EngineRun,
  keys: { secrets: readonly string[]; secretNames: readonly string[] },
): Promise<EngineOutcome & { verify?: VerifyResult }> {
  const first = await engine.start(run);
  if (verify === null) return first;
  const { runId, workDir, box, log, signal, onStart } = run;
  const env = removeKeys(run.env, keys, run);
  const stopGraceMs = config.limits.stop_grace;
  const again = (words: string, { sessionId: id, sessionUsage: usage, usage: before }: EngineOutcome) => {
    const retelling = `${run.retelling}\n\n${words}`;
    const more = { instruction: `${run.instruction}\n\n${words}`, retelling };
    return engine.start({
      ...run,
      ...more,
      onUsage: (now) => run.onUsage(addUsage(before, now)),
      // Without a session the agent needs the whole prompt again.
      ...(id === "" ? { prompt: retelling, session: null } : { prompt: words, session: { id, usage } }),
    });
  };
  return await verifyRun(
    { runId, engine, workDir, box, env, umask, stopGraceMs, log, signal, onStart, again },
    verify,
    first,
  );
}

const NO_REPORTS: RunReports = {
  waitedMs: () => 0,
  onStart() {},
  onUsage() {},
  onWindows() {},
  onWrite() {},
  onStep() {},
  onSession() {},
  steering: null,
};

const ENDED_EARLY = buildFailedOutcome("cancelled", "the run was ended");

function resolveSession(resumed: EngineSession | null, id: string): EngineSession {
  return resumed?.id === id ? resumed : { id, usage: USAGE_UNKNOWN };
}

function openLogs(
  { clock, config, paths }: EngineRunOptions,
  { identity: { execution_id }, engine }: EngineRequest,
  onWrite: () => void,
): { log: RunLog; events: RunLog | null } {
  const common = { maxBytes: config.limits.max_log_bytes, now: () => clock.now(), onWrite };
  return {
    log: RunLog.open({ ...common, path: getLogPath(paths, execution_id), stamped: true }),
    events: engine.agent
      ? RunLog.open({ ...common, path: getEventsPath(paths, execution_id), stamped: false })
      : null,
  };
}
