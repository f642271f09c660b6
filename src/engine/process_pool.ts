import { createLogger } from "../base/log.ts";
import { hasConversation } from "../domain/chat/message.ts";
import { AgentProcess } from "./agent_process.ts";
import { runTurn, TurnNotStarted, type TurnResult } from "./agent_turn.ts";
import { splitArgs } from "./arguments.ts";
import type { EngineRun } from "./engine.ts";
import { findFingerprint } from "./fingerprint.ts";
import type { KeepAlive } from "./keep_alive.ts";
import type { AgentSetup, TurnRequest } from "./launch.ts";
import { SpawnError } from "./process/process.ts";
import { SpareProcesses } from "./spare_processes.ts";

const log = createLogger("engine");
const MIB = 1024 * 1024;
// A timer with a longer delay fires immediately.
const TIMER_MAX_MS = 2_147_483_647;

interface PooledProcess {
  process: AgentProcess;
  fingerprint: string;
  session: string;
  timer: ReturnType<typeof setTimeout>;
  /** Ends the process if it is still idle. */
  evict: () => void;
}

/**
 * The processes of one engine. A run gets the idle process of its worker and conversation, a spare one for a new conversation, or a new
 * one. After its turn the process stays open within the limits of `warm` (contract 19). Without `keepAlive` each process ends after one
 * turn.
 */
export class ProcessPool {
  readonly #setup: AgentSetup;
  readonly #keepAlive: KeepAlive | null;
  /** Idle processes by worker and conversation. */
  readonly #idle = new Map<string, PooledProcess>();
  /** Ending processes by worker and conversation. Until they have ended, no other process may use their session. */
  readonly #leaving = new Map<string, { process: AgentProcess; left: Promise<void> }>();
  /** All processes that stay open, busy or idle. */
  readonly #open = new Set<AgentProcess>();
  /** Processes in a turn, with the worker and conversation of the turn. */
  readonly #busy = new Map<AgentProcess, string>();
  /** Processes that end after their turn, because release() was called during it. */
  readonly #released = new WeakSet<AgentProcess>();
  readonly #spares: SpareProcesses;
  #isClosed = false;

  constructor(setup: AgentSetup, keepAlive: KeepAlive | null) {
    this.#setup = setup;
    this.#keepAlive = keepAlive;
    this.#spares = new SpareProcesses(setup, keepAlive);
  }

  /** Runs a turn in the process of its conversation, or in a new one. Returns null if the run was ended before. Throws SpawnError. */
  async run(run: EngineRun, request: TurnRequest): Promise<TurnResult | null> {
    const key = buildKey(run);
    const stays = this.#canStay(run);
    const asks = this.#canAsk(run);
    this.#spares.touch(run);
    const pooled = this.#take(key);
    if (pooled !== null) {
      if (stays && request.resume && pooled.session === request.sessionId && this.#fits(pooled, run)) {
        try {
          return await this.#runTurn(pooled.process, run, request);
        } catch (error) {
          if (!(error instanceof TurnNotStarted)) throw error;
          log.info("An idle {kind} did not answer and is replaced", { kind: this.#setup.adapter.kind });
        }
      } else await this.#close(key, pooled.process, run.signal);
    }
    await this.#waitUntilLeft(key, run.signal);
    if (run.signal.aborted) return null;
    if (stays && !request.resume) return await this.#openConversation(run, request);
    // Only a process that can stay open has the dialogue in which the agent asks.
    return await this.#startTurn(run, request, stays || asks);
  }

  async #openConversation(before: EngineRun, request: TurnRequest): Promise<TurnResult> {
    const run = this.#spares.follow(before);
    const spare = this.#spares.take(run);
    if (spare === null) return await this.#startTurn(run, request, true);
    this.#add(spare.process);
    try {
      return await this.#runTurn(spare.process, run, { ...request, sessionId: spare.session });
    } catch (error) {
      if (!(error instanceof TurnNotStarted)) throw error;
      log.info("A spare {kind} did not answer and is replaced", { kind: this.#setup.adapter.kind });
      return await this.#startTurn(run, request, true);
    }
  }

  async #startTurn(run: EngineRun, request: TurnRequest, stays: boolean): Promise<TurnResult> {
    const process = await AgentProcess.start(this.#setup, run, request, { stays, tools: null });
    if (process.stays) this.#add(process);
    return await this.#runTurn(process, run, request);
  }

  #add(process: AgentProcess): void {
    this.#open.add(process);
    void process.ended.catch(() => {}).then(() => this.#open.delete(process));
  }

  /**
   * Ends the idle and spare processes of this worker, and those in a turn after the turn. null means all workers. "" means every process
   * that stays open; from then on, none stays open. Resolves when the idle processes have ended.
   */
  async release(workerId: string | null): Promise<void> {
    if (workerId === "") this.#isClosed = true;
    const matches = (key: string) =>
      workerId === null || workerId === "" || key.startsWith(buildKeyPrefix(workerId));
    for (const [process, key] of this.#busy) if (matches(key)) this.#released.add(process);
    const spares = this.#spares.release(workerId);
    const idle = [...this.#idle.keys()].filter(matches).flatMap((key) => this.#take(key)?.process ?? []);
    await Promise.all([
      spares,
      ...(workerId === "" ? [...this.#open] : idle).map((process) => process.end()),
      ...[...this.#leaving].filter(([key]) => matches(key)).map(([, { left }]) => left),
    ]);
  }

  // A process that stays open serves one conversation, and cannot change its JSON schema.
  #canStay({ env, schema, extraArgs }: EngineRun): boolean {
    const { adapter: { open }, config } = this.#setup;
    if (this.#keepAlive === null || open === undefined) return false;
    const acceptsArgs = open.acceptsArgs?.([...config.args, ...splitArgs(extraArgs)]) ?? true;
    return acceptsArgs && schema === null && hasConversation(env.SVC_SESSION_KEY ?? "");
  }

  /** Whether a person decides on tool calls. Throws SpawnError when the arguments make that impossible. */
  #canAsk({ schema, extraArgs }: EngineRun): boolean {
    const { adapter, config } = this.#setup;
    if (config.permissions !== "ask" || schema !== null) return false;
    if (adapter.open?.acceptsArgs?.([...config.args, ...splitArgs(extraArgs)]) === false) {
      throw new SpawnError("with permissions: ask it does not accept these arguments", "setup");
    }
    return adapter.open !== undefined;
  }

  async #close(key: string, process: AgentProcess, signal?: AbortSignal): Promise<void> {
    const left = process.close().finally(() => {
      if (this.#leaving.get(key)?.left === left) this.#leaving.delete(key);
    });
    this.#leaving.set(key, { process, left });
    if (signal === undefined) await left;
    else await this.#waitUntilLeft(key, signal);
  }

  // If the run is cancelled meanwhile, ends the leaving process instead of waiting for it.
  async #waitUntilLeft(key: string, signal: AbortSignal): Promise<void> {
    const leaving = this.#leaving.get(key);
    if (leaving === undefined) return;
    const end = () => void leaving.process.end();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await leaving.left;
    signal.removeEventListener("abort", end);
  }

  async #runTurn(process: AgentProcess, run: EngineRun, request: TurnRequest): Promise<TurnResult> {
    if (!process.stays) return await runTurn(this.#setup, process, run, request);
    let isKept = false;
    this.#busy.set(process, buildKey(run));
    try {
      const fingerprint = findFingerprint(this.#setup, run);
      const result = await runTurn(this.#setup, process, run, request);
      const session = result.output.session || request.sessionId;
      if (
        this.#canStay(run) && fingerprint !== null && session !== "" && result.isReusable &&
        await this.#mayKeep(process)
      ) {
        this.#keep(buildKey(run), { process, fingerprint, session });
        isKept = true;
      }
      return result;
    } finally {
      this.#busy.delete(process);
      // Runs also when the turn throws.
      if (!isKept) await process.end();
    }
  }

  async #mayKeep(process: AgentProcess): Promise<boolean> {
    if (this.#keepAlive === null || this.#isClosed) return false;
    const { max_turns, max_age } = this.#keepAlive.warm;
    if (process.turns >= max_turns || performance.now() - process.startedAt >= max_age) return false;
    if (this.#released.has(process)) return false;
    // If the search fails, the process is ended: the turn already has its outcome.
    return !await process.hasStrays().catch(() => true);
  }

  #keep(key: string, pooled: Omit<PooledProcess, "timer" | "evict">): void {
    if (this.#keepAlive === null) return;
    const { warm: { keep, max_age, max_rss_mb }, idle } = this.#keepAlive;
    const { process } = pooled;
    // Runs of one conversation can overlap when their directories differ. Only the latest process stays idle.
    const before = this.#take(key);
    if (before !== null) void this.#close(key, before.process);
    const evict = () => {
      if (this.#idle.get(key)?.process !== process) return;
      this.#take(key);
      void this.#close(key, process);
    };
    const left = process.startedAt + max_age - performance.now();
    const timer = setTimeout(evict, Math.min(keep, left, TIMER_MAX_MS));
    this.#idle.set(key, { ...pooled, evict, timer });
    process.onWork = evict;
    idle.add(evict);
    void process.ended.catch(() => {}).then(evict);
    // Measured after the run has reported its outcome, because measuring takes a while.
    void process.readRss().then((bytes) => {
      if (bytes > max_rss_mb * MIB) evict();
    }, evict);
  }

  #take(key: string): PooledProcess | null {
    const pooled = this.#idle.get(key);
    if (pooled === undefined) return null;
    clearTimeout(pooled.timer);
    this.#keepAlive?.idle.delete(pooled.evict);
    this.#idle.delete(key);
    return pooled;
  }

  #fits({ process, fingerprint }: PooledProcess, run: EngineRun): boolean {
    const isYoung = performance.now() - process.startedAt < (this.#keepAlive?.warm.max_age ?? 0);
    return isYoung && !process.isLeaving && fingerprint === findFingerprint(this.#setup, run);
  }
}

function buildKey({ env }: EngineRun): string {
  return `${buildKeyPrefix(env.SVC_WORKER_ID ?? "")}${env.SVC_SESSION_KEY}`;
}

function buildKeyPrefix(workerId: string): string {
  return `${workerId}\0`;
}
