import type { Clock } from "../../base/clock.ts";
import type { Verified, Verify } from "../../domain/work/command.ts";
import { stepWords } from "../../domain/work/progress.ts";
import type { Config } from "../../config/schema.ts";
import { sumOfUsage, type Usage, USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import type { ProviderWindow } from "../../engine/protocol/adapter.ts";
import {
  type EngineOutcome,
  type EngineRun,
  type EngineSession,
  failedOutcome,
} from "../../engine/engine.ts";
import { RunLog } from "../../engine/process/run_log.ts";
import { newId } from "../../base/id.ts";
import { type DataPaths, eventsPath, logPath, runDirOf } from "../../base/paths.ts";
import { withoutKeys } from "./command.ts";
import type { EnvironmentOf } from "../environment.ts";
import { equip, type EquipmentRequest } from "../launch_options.ts";
import { withoutSecrets } from "../secrets.ts";
import { verified } from "./verify.ts";

/** What every run of an engine needs. */
export interface EngineRunOptions {
  clock: Clock;
  config: Pick<Config, "limits">;
  paths: DataPaths;
  environmentOf: EnvironmentOf;
  /** The umask that the service was started with. */
  umask: number;
}

/** One question to an engine. */
interface EngineRequest
  extends EquipmentRequest, Pick<EngineRun, "workDir" | "instruction" | "schema" | "signal"> {
  /** The log's first line. */
  opening: string;
  /** The log's last line, or null for none. */
  closing: (outcome: EngineOutcome) => string | null;
  /** What checks the work, or null (contract 13). */
  verify?: Verify | null;
  /** Called after each write to a log. */
  onWrite?: () => void;
  /** How long the run has waited for a person so far, in ms. */
  waitedMs?: () => number;
  /** Called when the engine has started, with its process where it has one; again for each further process. */
  onStart?: (pid?: number) => void;
  /** Called with what the run has used so far, where the engine tells while it runs. */
  onUsage?: (usage: Usage) => void;
  /** Called with what the engine says of its provider's windows. */
  onWindows?: (windows: ProviderWindow[]) => void;
  /** Called with what the agent does, in plain words. */
  onStep?: (words: string) => void;
  /** Called when the engine has reported its session, with the totals before this run. */
  onSession?: (session: EngineSession) => void;
}

/**
 * Asks an engine once: prepares logs, environment and a private directory, and masks secrets in everything that is stored.
 * When this resolves, both logs are on the disk. Throws when the service cannot prepare the run.
 */
export async function runEngine(
  options: EngineRunOptions,
  request: EngineRequest,
): Promise<EngineOutcome & { verify?: Verified }> {
  const { identity, engine, signal } = request;
  // One run may ask more than once, so the directory has an id of its own.
  const runDir = runDirOf(options.paths, newId());
  try {
    const { log, events } = openLogs(options, request);
    try {
      const { secrets, ...equipment } = await equip(options, { ...request, lifeMs: lifeOf(request) }, runDir);
      for (const secret of secrets) for (const file of [log, events]) file?.mask(secret);
      log.line(request.opening);
      const run: EngineRun = {
        runId: identity.run_id,
        workDir: request.workDir,
        instruction: request.instruction,
        schema: request.schema,
        ...equipment,
        log,
        events,
        signal,
        waitedMs: () => request.waitedMs?.() ?? 0,
        onStart: (pid) => request.onStart?.(pid),
        onUsage: (usage) => request.onUsage?.(usage),
        onWindows: (windows) => request.onWindows?.(windows),
        onStep: (tool, input) => request.onStep?.(stepWords(log.maskText(tool), log.maskText(input))),
        onSession: (id) => request.onSession?.(resumedOr(equipment.session, id)),
      };
      const outcome = signal.aborted ? ENDED_EARLY : await startChecked(options, request, run, secrets);
      const masked = withoutSecrets(secrets, outcome);
      const closing = request.closing(masked);
      if (closing !== null) log.line(closing);
      return masked;
    } finally {
      // The logs are on the disk before the outcome, so a finished run has a complete log (reliability DUR-9).
      await Promise.all([log.close(), events?.close()]);
    }
  } finally {
    if (engine.external) void Deno.remove(runDir, { recursive: true }).catch(() => {});
  }
}

// Each check that fails is followed by one more run of the engine, with the same token.
function lifeOf({ engine, verify }: EngineRequest): number | undefined {
  return verify ? (engine.config.timeout + verify.timeout_ms) * (verify.attempts + 1) : undefined;
}

async function startChecked(
  { config, umask }: EngineRunOptions,
  { engine, verify = null }: EngineRequest,
  run: EngineRun,
  secrets: readonly string[],
): Promise<EngineOutcome & { verify?: Verified }> {
  const first = await engine.start(run);
  if (verify === null) return first;
  const { runId, workDir, log, signal, onStart } = run;
  const env = withoutKeys(run.env, secrets, run);
  const stopGraceMs = config.limits.stop_grace;
  const again = (words: string, { sessionId: id, sessionUsage: usage, usage: before }: EngineOutcome) => {
    const retelling = `${run.retelling}\n\n${words}`;
    const more = { instruction: `${run.instruction}\n\n${words}`, retelling };
    return engine.start({
      ...run,
      ...more,
      onUsage: (now) => run.onUsage(sumOfUsage(before, now)),
      // Without a session the agent has to be told everything once more.
      ...(id === "" ? { prompt: retelling, session: null } : { prompt: words, session: { id, usage } }),
    });
  };
  return await verified(
    { runId, engine, workDir, env, umask, stopGraceMs, log, signal, onStart, again },
    verify,
    first,
  );
}

const ENDED_EARLY = failedOutcome("cancelled", "the run was ended");

function resumedOr(resumed: EngineSession | null, id: string): EngineSession {
  return resumed?.id === id ? resumed : { id, usage: USAGE_UNKNOWN };
}

function openLogs(
  { clock, config, paths }: EngineRunOptions,
  { identity: { execution_id }, engine, onWrite = () => {} }: EngineRequest,
): { log: RunLog; events: RunLog | null } {
  const common = { maxBytes: config.limits.max_log_bytes, now: () => clock.now(), onWrite };
  return {
    log: RunLog.open({ ...common, path: logPath(paths, execution_id), stamped: true }),
    events: engine.agent
      ? RunLog.open({ ...common, path: eventsPath(paths, execution_id), stamped: false })
      : null,
  };
}
