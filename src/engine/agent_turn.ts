import { join } from "node:path";
import { type Place, UnsafePathError } from "../base/files/open_directory.ts";
import { listPlain, readPlain, readPlainEnd } from "../base/files/plain_file.ts";
import { getStateRoot } from "../base/paths.ts";
import { type Usage, USAGE_UNKNOWN } from "../domain/work/execution.ts";
import type { AgentProcess } from "./agent_process.ts";
import { EarlyExit } from "./early_exit.ts";
import type { EngineRun } from "./engine.ts";
import type { AgentSetup, TurnRequest } from "./launch.ts";
import type { ProcessEnd } from "./process/process.ts";
import { placeInRunDir } from "./run_dir.ts";
import { STOPPED_MIN_MS, TimeLimits } from "./process/time_limits.ts";
import type { Adapter, ProviderWindow } from "./protocol/adapter.ts";
import { OutputParser } from "./protocol/output_parser.ts";

export interface TurnResult {
  request: TurnRequest;
  end: ProcessEnd;
  output: OutputParser;
  /** Whether the outcome is the agent's: the service did not end the turn, or only after its final event. */
  finished: boolean;
  /** Whether the engine opened another session than the one to resume. */
  openedOtherSession: boolean;
  /** Whether the process can take another turn. */
  isReusable: boolean;
}

/** Thrown when an idle process does not start its turn. The model got no request, so another process may run the turn. */
export class TurnNotStarted extends Error {}

// An agent writes its first line as soon as it has read the prompt, long before its model responds.
const START_MAX_MS = 10_000;
// How long an agent may take to end an interrupted turn.
const TURN_END_MAX_MS = 2_000;
// Engines may wait ten seconds for a network after their final event (facts, engines 2.5).
const LINGER_MAX_MS = 3_000;

/**
 * Runs one turn in a process. Resolves when a process that stays open has sent its final event, or otherwise when the process has ended.
 * Throws TurnNotStarted.
 */
export async function runTurn(
  setup: AgentSetup,
  process: AgentProcess,
  run: EngineRun,
  request: TurnRequest,
): Promise<TurnResult> {
  const { config, adapter } = setup;
  const onSession = (id: string) => {
    process.markReady();
    run.onSession(id);
  };
  const exit = new EarlyExit({ ...run, onSession }, request);
  const output: OutputParser = new OutputParser({
    adapter,
    parse: (line) => process.parse(line),
    hasDialogue: process.hasDialogue,
    sessionId: request.sessionId,
    log: run.log,
    events: run.events,
    usedBefore: getUsageBefore(run, request),
    onEvent: (event) => {
      exit.event(event);
      if (event.kind === "usage") run.onUsage(output.usage.run);
      else if (event.kind === "windows") run.onWindows(event.windows);
      else if (event.kind === "tool_start") run.onStep?.(event.name, event.input);
      else if (event.kind === "tool_end") run.onStepEnd?.(event.ok);
      else if (event.kind === "steered") run.steering?.onAnswer(event.id, event.taken);
      else if (event.kind === "done") run.steering?.setTarget(null);
    },
  });
  const turn = new Turn(process, run, {
    exit,
    writesBeforeModel: process.stays && adapter.open?.writesBeforeModel === true,
    hasActed: () => output.acted,
  });
  const { timeout: timeoutMs, idle_timeout: idleTimeoutMs } = config;
  const limits = new TimeLimits(
    { timeoutMs, idleTimeoutMs, waitedMs: run.waitedMs },
    (reason) => turn.stop(reason),
  );
  try {
    run.onStart(process.pid);
    process.startTurn(run, request, {
      output(stream, chunk) {
        turn.hasOutput = true;
        limits.restart();
        output.add(stream, chunk);
      },
      take: (events) => output.take(events),
      exited() {
        limits.end();
        turn.exited();
      },
    });
    if (process.canSteer) run.steering?.setTarget((id, words) => process.steer(id, words));
    const end = await turn.waitForEnd();
    exit.end();
    const { usageFile } = process;
    output.end(usageFile === undefined ? null : readUsage(placeInRunDir(usageFile, run.runDir)));
    // A session that stays open reports its windows as events.
    const windows = process.stays ? [] : await readWindows(adapter, run, output.session || request.sessionId);
    if (windows.length > 0) run.onWindows(windows);
    const finished = end.reason === "exited" || exit.wasFinished;
    const isReusable = process.stays && output.done !== null && !process.isLeaving &&
      (output.done.ok || end.reason === "aborted");
    return { request, end, output, finished, openedOtherSession: exit.openedOtherSession, isReusable };
  } finally {
    limits.end();
    exit.end();
    run.steering?.setTarget(null);
    process.endTurn();
  }
}

/** Returns the session's totals before a turn. A new session has none. */
export function getUsageBefore({ session }: EngineRun, { resume }: TurnRequest): Usage {
  return resume && session !== null ? session.usage : USAGE_UNKNOWN;
}

interface TurnParts {
  exit: EarlyExit;
  writesBeforeModel: boolean;
  /** Whether the agent has written or acted. */
  hasActed: () => boolean;
}

/** Waits for the end of a turn, and ends a turn on request or after a limit. */
class Turn {
  hasOutput = false;
  readonly #process: AgentProcess;
  readonly #run: EngineRun;
  readonly #exit: EarlyExit;
  readonly #writesBeforeModel: boolean;
  readonly #wasIdle: boolean;
  readonly #hasActed: () => boolean;
  #isRefused = false;
  #hasExited = false;
  #reason: ProcessEnd["reason"] = "exited";
  #timers: ReturnType<typeof setTimeout>[] = [];

  constructor(process: AgentProcess, run: EngineRun, parts: TurnParts) {
    this.#process = process;
    this.#run = run;
    this.#exit = parts.exit;
    this.#writesBeforeModel = parts.writesBeforeModel;
    this.#hasActed = parts.hasActed;
    this.#wasIdle = process.hasWaited;
  }

  /** Ends the turn. A process that stays open survives a turn that a person ended, and no other. */
  stop(reason: ProcessEnd["reason"]): void {
    if (this.#reason !== "exited" || this.#hasExited) return;
    this.#reason = reason;
    this.#exit.end();
    this.#process.interrupt();
    // An agent that has not answered yet may read the prompt after the interruption, and run the turn.
    const hasStarted = this.hasOutput || !this.#writesBeforeModel;
    const survives = this.#process.stays && reason === "aborted" && this.#run.signal.aborted && hasStarted;
    if (survives) this.#endAfter(TURN_END_MAX_MS);
    else void this.#process.end();
  }

  /** Called when the program has exited. Nothing else can end the turn then. */
  exited(): void {
    this.#hasExited = true;
    this.#timers.forEach(clearTimeout);
  }

  /** Resolves when the turn and all its processes have ended, except a process that stays open. Throws TurnNotStarted. */
  async waitForEnd(): Promise<ProcessEnd> {
    const { signal, finished } = this.#exit;
    const onAbort = () => this.stop("aborted");
    const { promise: done, resolve } = Promise.withResolvers<null>();
    const onFinished = () => {
      if (this.#process.stays) resolve(null);
      else if (!this.#hasExited) this.#timers.push(setTimeout(() => this.stop("aborted"), LINGER_MAX_MS));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    finished.signal.addEventListener("abort", onFinished, { once: true });
    if (signal.aborted) onAbort();
    if (finished.signal.aborted) onFinished();
    if (this.#wasIdle && this.#writesBeforeModel) this.#expectOutput(START_MAX_MS);
    try {
      await Promise.race([done, this.#process.ended]);
      const code = this.#process.isLeaving ? (await this.#process.ended).code : 0;
      if (this.#wasIdle && this.#reason === "exited" && !this.#hasStarted()) throw new TurnNotStarted();
      return { reason: this.#reason, code };
    } finally {
      this.#timers.forEach(clearTimeout);
      signal.removeEventListener("abort", onAbort);
      finished.signal.removeEventListener("abort", onFinished);
    }
  }

  #endAfter(ms: number): void {
    this.#timers.push(setTimeout(() => void this.#process.end(), ms));
  }

  // If the timer fires late, the service itself was suspended. It reads pending output before it treats the agent as silent.
  #expectOutput(ms: number): void {
    const due = performance.now() + ms;
    this.#timers.push(setTimeout(() => {
      if (performance.now() - due > STOPPED_MIN_MS) this.#expectOutput(STOPPED_MIN_MS);
      else this.#refuse();
    }, ms));
  }

  #refuse(): void {
    if (this.hasOutput) return;
    this.#isRefused = true;
    void this.#process.end();
  }

  // An agent that was ended for its silence may still write its first line.
  #hasStarted(): boolean {
    return this.hasOutput && !(this.#isRefused && !this.#hasActed());
  }
}

const TAIL_BYTES = 64 * 1024;
const USAGE_FILE_MAX_BYTES = 1024 * 1024;

// If no file is readable, there is no usage. Throws UnsafePathError.
function readUsage(file: Place): string | null {
  try {
    return readPlain(file, USAGE_FILE_MAX_BYTES);
  } catch (error) {
    if (error instanceof UnsafePathError) throw error;
    return null;
  }
}

/** Reads the provider's windows of engines that write them only into their session file. Throws UnsafePathError. */
async function readWindows(
  { sessionLog, login }: Adapter,
  run: EngineRun,
  sessionId: string,
): Promise<ProviderWindow[]> {
  if (sessionLog === undefined || sessionId === "") return [];
  const home = run.stateDir ?? join(run.env.HOME ?? "", login.home);
  // The operator may have made the engine's own directory a link, but not a worker's.
  const root = run.stateDir === null ? home : getStateRoot(run.stateDir);
  try {
    for (const folder of sessionLog.folders(sessionId)) {
      const path = join(home, folder);
      const name = (await listPlain({ root, path })).find((name) => sessionLog.isName(name, sessionId));
      if (name === undefined) continue;
      return sessionLog.windows(readPlainEnd({ root, path: join(path, name) }, TAIL_BYTES)?.text ?? "");
    }
  } catch (error) {
    if (error instanceof UnsafePathError) throw error;
  }
  return [];
}
