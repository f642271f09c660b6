import { createLogger } from "../base/log.ts";
import { AgentProcess } from "./agent_process.ts";
import type { EngineRun } from "./engine.ts";
import { findFingerprint } from "./fingerprint.ts";
import type { KeepAlive } from "./keep_alive.ts";
import { type AgentSetup, createSessionId } from "./launch.ts";

const log = createLogger("engine");
// A worker without a run for so long has no spare process.
const UNUSED_MAX_MS = 3_600_000;
// Until then the run's own agent has asked its model. The start of another process would take time from it.
const STARTS_AFTER_MS = 1_000;
// How long an agent may take to open its session.
const READY_MAX_MS = 60_000;

interface Spare {
  worker: string;
  session: string;
  fingerprint: string;
  /** Null until it has started. */
  process: AgentProcess | null;
  /** Resolves when it has started, or could not. */
  started: Promise<void>;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Ends the process if it still waits. */
  evict: () => void;
}

/**
 * The spare processes of one engine. One of each worker waits for a new conversation, without conversation, token and run. The run that
 * opens a conversation takes it, and another one starts (contract 19.5).
 */
export class SpareProcesses {
  readonly #setup: AgentSetup;
  readonly #keepAlive: KeepAlive | null;
  /** By worker. */
  readonly #waiting = new Map<string, Spare>();
  /** Number of calls of release(). */
  #releases = 0;

  constructor(setup: AgentSetup, keepAlive: KeepAlive | null) {
    this.#setup = setup;
    this.#keepAlive = keepAlive;
  }

  /** Returns a run that starts a spare process when its own agent has opened its session. */
  follow(run: EngineRun): EngineRun {
    if (run.hasWorktree === true) return run;
    const releases = this.#releases;
    return {
      ...run,
      onSession: (id) => {
        run.onSession(id);
        // Settings that a change has ended must not come back.
        const prepare = () => releases === this.#releases && this.#prepare(run);
        Deno.unrefTimer(setTimeout(prepare, STARTS_AFTER_MS));
      },
    };
  }

  /** Takes the spare process of the run's worker, if it can do this run. */
  take(run: EngineRun): { process: AgentProcess; session: string } | null {
    const spare = this.#waiting.get(getWorker(run));
    if (!spare?.process?.isReady || hasMessageFiles(run)) return null;
    this.#remove(spare);
    const { process, session, fingerprint } = spare;
    const isYoung = performance.now() - process.startedAt < (this.#keepAlive?.warm.max_age ?? 0);
    if (isYoung && !process.isLeaving && fingerprint === findFingerprint(this.#setup, run)) {
      return { process, session };
    }
    void process.end();
    return null;
  }

  /** Called for each run of a worker: its spare process continues to wait. */
  touch(run: EngineRun): void {
    const spare = this.#waiting.get(getWorker(run));
    if (spare?.process?.isReady) this.#wait(spare, UNUSED_MAX_MS);
  }

  /** Ends the spare process of this worker, or all with null or "". Resolves when they have ended. */
  async release(workerId: string | null): Promise<void> {
    this.#releases++;
    const ending = [...this.#waiting.values()].filter(({ worker }) =>
      workerId === null || workerId === "" || worker === workerId
    );
    await Promise.all(ending.map((spare) => this.#end(spare)));
  }

  #prepare(run: EngineRun): void {
    const { machine } = this.#setup;
    const worker = getWorker(run);
    const fingerprint = findFingerprint(this.#setup, run);
    if (this.#keepAlive === null || fingerprint === null || this.#waiting.has(worker)) return;
    const { warm, idle } = this.#keepAlive;
    if ((warm.spare ?? machine.spare) === 0 || hasMessageFiles(run)) return;
    const spare: Spare = {
      ...{ worker, fingerprint, session: createSessionId(this.#setup.adapter), process: null },
      ...{ started: Promise.resolve(), timer: undefined },
      evict: () => {
        if (this.#waiting.get(worker) === spare) void this.#end(spare);
      },
    };
    this.#waiting.set(worker, spare);
    if (!idle.addSpare(spare.evict)) return this.#remove(spare);
    spare.timer = setTimeout(() => {
      if (spare.process?.isReady) this.#wait(spare, UNUSED_MAX_MS);
      else spare.evict();
    }, READY_MAX_MS);
    spare.started = this.#start(spare, run);
  }

  async #start(spare: Spare, run: EngineRun): Promise<void> {
    const { machine: { describeTools }, adapter: { kind } } = this.#setup;
    try {
      const tools = await describeTools?.(run.rights);
      if (tools === undefined || this.#waiting.get(spare.worker) !== spare) return this.#remove(spare);
      const request = { sessionId: spare.session, resume: false, prompt: "" };
      const process = await AgentProcess.start(this.#setup, run, request, { stays: true, tools });
      spare.process = process;
      process.onWork = spare.evict;
      void process.ended.catch(() => {}).then(() => this.#remove(spare));
    } catch (error) {
      this.#remove(spare);
      log.warning("Cannot start a spare {kind}: {error}", { kind, error });
    }
  }

  #wait(spare: Spare, ms: number): void {
    clearTimeout(spare.timer);
    const left = (spare.process?.startedAt ?? 0) + (this.#keepAlive?.warm.max_age ?? 0) - performance.now();
    spare.timer = setTimeout(spare.evict, Math.min(ms, left));
  }

  async #end(spare: Spare): Promise<void> {
    this.#remove(spare);
    await spare.started;
    await spare.process?.end();
  }

  #remove(spare: Spare): void {
    clearTimeout(spare.timer);
    this.#keepAlive?.idle.delete(spare.evict);
    if (this.#waiting.get(spare.worker) === spare) this.#waiting.delete(spare.worker);
  }
}

function getWorker({ env }: EngineRun): string {
  return env.SVC_WORKER_ID ?? "";
}

// A box shows only the files that were there when it started.
function hasMessageFiles({ box }: EngineRun): boolean {
  return (box?.messageFiles.length ?? 0) > 0;
}
