import { logger } from "../base/log.ts";
import { type Ran, readingOf } from "./agent_process.ts";
import type { Start } from "./launch.ts";
import type { EngineRun } from "./engine.ts";
import { formOf, type OpenParts, OpenProcess } from "./open_process.ts";
import { NotTakenUp, runTurn } from "./open_turn.ts";
import type { Stays } from "./keep_alive.ts";
import { Watch } from "./early_exit.ts";

const log = logger("engine");
const MIB = 1024 * 1024;
// A longer timer fires at once.
const TIMER_MAX_MS = 2_147_483_647;

/** What keeps processes of an engine open. */
type PoolParts = OpenParts & Stays;

/** A process that waits for the next turn of its conversation. */
interface Kept {
  process: OpenProcess;
  form: string;
  session: string;
  timer: ReturnType<typeof setTimeout>;
  /** Ends it, if it still waits. */
  forget: () => void;
}

/**
 * The open processes of one engine: at most one for a worker and conversation, `warm.max` that wait in all, each for `warm.keep` (contract
 * 19). What does not fit the next run is replaced without anybody noticing.
 */
export class WarmPool {
  readonly #parts: PoolParts;
  /** By worker and conversation. */
  readonly #kept = new Map<string, Kept>();
  /** Those that were let go and have not ended yet: no other may have their session. */
  readonly #leaving = new Map<string, { process: OpenProcess; left: Promise<void> }>();
  readonly #open = new Set<OpenProcess>();
  #isOver = false;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  /** Does a run in the process of its conversation, or in a new one. Throws SpawnError. */
  async run(run: EngineRun, start: Start): Promise<Ran> {
    const key = keyOf(run);
    const kept = this.#take(key);
    if (kept !== null) {
      const fits = start.resume && kept.session === start.sessionId && this.#fits(kept, run);
      if (fits) {
        try {
          return await this.#turn(kept.process, run, start);
        } catch (error) {
          if (!(error instanceof NotTakenUp)) throw error;
          log.info("A {kind} that was kept open did not answer, and is replaced", {
            kind: this.#parts.adapter.kind,
          });
        }
      } else await this.#close(key, kept.process, run.signal);
    }
    await this.#gone(key, run.signal);
    if (run.signal.aborted) return notBegun(this.#parts, run, start);
    const process = await OpenProcess.start(this.#parts, run, start);
    this.#open.add(process);
    void process.ended.catch(() => {}).then(() => this.#open.delete(process));
    return await this.#turn(process, run, start);
  }

  /** Ends the process that waits for this run's conversation. Resolves when it has ended, or there is none. */
  async letGo(run: EngineRun): Promise<void> {
    const key = keyOf(run);
    const kept = this.#take(key);
    if (kept !== null) await this.#close(key, kept.process, run.signal);
    await this.#gone(key, run.signal);
  }

  /** Ends the processes of this worker that wait; "": all, and none is kept from now on. Resolves when they have ended. */
  async release(workerId: string): Promise<void> {
    if (workerId === "") this.#isOver = true;
    const theirs = (key: string) => workerId === "" || key.startsWith(keyStart(workerId));
    const idle = [...this.#kept.keys()].filter(theirs).flatMap((key) => this.#take(key)?.process ?? []);
    await Promise.all([
      ...(workerId === "" ? [...this.#open] : idle).map((process) => process.end()),
      ...[...this.#leaving].filter(([key]) => theirs(key)).map(([, { left }]) => left),
    ]);
  }

  async #close(key: string, process: OpenProcess, signal?: AbortSignal): Promise<void> {
    const left = process.close().finally(() => {
      if (this.#leaving.get(key)?.left === left) this.#leaving.delete(key);
    });
    this.#leaving.set(key, { process, left });
    if (signal === undefined) await left;
    else await this.#gone(key, signal);
  }

  // A run that is ended meanwhile does not wait until it ends by itself.
  async #gone(key: string, signal: AbortSignal): Promise<void> {
    const leaving = this.#leaving.get(key);
    if (leaving === undefined) return;
    const end = () => void leaving.process.end();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await leaving.left;
    signal.removeEventListener("abort", end);
  }

  async #turn(process: OpenProcess, run: EngineRun, start: Start): Promise<Ran> {
    let stays = false;
    try {
      const form = this.#formOf(run);
      const { ran, isWell } = await runTurn(this.#parts, process, run, start);
      const session = ran.reading.session || start.sessionId;
      if (form !== null && session !== "" && isWell && await this.#mayStay(process)) {
        this.#keep(keyOf(run), { process, form, session });
        stays = true;
      }
      return ran;
    } finally {
      // Also when the turn could not be begun.
      if (!stays) await process.end();
    }
  }

  async #mayStay(process: OpenProcess): Promise<boolean> {
    const { max_turns, max_age } = this.#parts.warm;
    if (this.#isOver || process.turns >= max_turns || performance.now() - process.startedAt >= max_age) {
      return false;
    }
    // What cannot be known is not risked; the turn has its outcome already.
    return !await process.hasStrays().catch(() => true);
  }

  #keep(key: string, kept: Omit<Kept, "timer" | "forget">): void {
    const { warm: { keep, max_age, max_rss_mb }, waiting } = this.#parts;
    const { process } = kept;
    // Two runs of one conversation at once, in directories that have become others: one process is enough.
    const before = this.#take(key);
    if (before !== null) void this.#close(key, before.process);
    const forget = () => {
      if (this.#kept.get(key)?.process !== process) return;
      this.#take(key);
      void this.#close(key, process);
    };
    const left = process.startedAt + max_age - performance.now();
    const timer = setTimeout(forget, Math.min(keep, left, TIMER_MAX_MS));
    this.#kept.set(key, { ...kept, forget, timer });
    process.onWork = forget;
    waiting.add(forget);
    void process.ended.catch(() => {}).then(forget);
    // Measured when the run is told already.
    void process.rss().then((bytes) => {
      if (bytes > max_rss_mb * MIB) forget();
    }, forget);
  }

  #take(key: string): Kept | null {
    const kept = this.#kept.get(key);
    if (kept === undefined) return null;
    clearTimeout(kept.timer);
    this.#parts.waiting.delete(kept.forget);
    this.#kept.delete(key);
    return kept;
  }

  #fits({ process, form }: Kept, run: EngineRun): boolean {
    const isYoung = performance.now() - process.startedAt < this.#parts.warm.max_age;
    return isYoung && !process.isLeaving && form === this.#formOf(run);
  }

  /** null: its program or its directory is not there at the moment. A new process says what is wrong. */
  #formOf(run: EngineRun): string | null {
    try {
      return formOf(this.#parts, run);
    } catch {
      return null;
    }
  }
}

function keyOf({ env }: EngineRun): string {
  return `${keyStart(env.SVC_WORKER_ID ?? "")}${env.SVC_SESSION_KEY}`;
}

function keyStart(workerId: string): string {
  return `${workerId}\0`;
}

// Ended before its process could be started.
function notBegun({ adapter }: PoolParts, run: EngineRun, start: Start): Ran {
  const watch = new Watch(run, start);
  const reading = readingOf(adapter, run, start, { watch });
  watch.end();
  reading.end(null);
  return { start, end: { reason: "aborted", code: 0 }, reading, finished: false, strayed: false };
}
