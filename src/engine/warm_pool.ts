import { logger } from "../base/log.ts";
import type { Ran } from "./agent_process.ts";
import type { Start } from "./launch.ts";
import type { EngineRun } from "./engine.ts";
import { formOf, type OpenParts, OpenProcess } from "./open_process.ts";
import { NotTakenUp, runTurn } from "./open_turn.ts";
import type { Stays } from "./stays.ts";

const log = logger("engine");
const MIB = 1024 * 1024;

/** What keeps processes of an engine open. */
type PoolParts = OpenParts & Stays;

/** A process that waits for the next turn of its conversation. */
interface Kept {
  process: OpenProcess;
  form: string;
  session: string;
  worker: string;
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
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #open = new Set<OpenProcess>();
  #isOver = false;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  /** Does a run in the process of its conversation, or in a new one. Throws SpawnError. */
  async run(run: EngineRun, start: Start): Promise<Ran> {
    const kept = this.#take(keyOf(run));
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
      } else await kept.process.close();
    }
    await this.#leaving.get(keyOf(run));
    const process = await OpenProcess.start(this.#parts, run, start);
    this.#open.add(process);
    void process.ended.catch(() => {}).then(() => this.#open.delete(process));
    return await this.#turn(process, run, start);
  }

  /** Ends the processes of this worker that wait; "": all, and none is kept from now on. */
  async release(workerId: string): Promise<void> {
    if (workerId === "") this.#isOver = true;
    const theirs = [...this.#kept].filter(([, { worker }]) => workerId === "" || worker === workerId);
    const idle = theirs.flatMap(([key]) => this.#take(key)?.process ?? []);
    await Promise.all((workerId === "" ? [...this.#open] : idle).map((process) => process.end()));
  }

  async #turn(process: OpenProcess, run: EngineRun, start: Start): Promise<Ran> {
    let stays = false;
    try {
      const form = formOf(this.#parts, run);
      const { ran, isWell } = await runTurn(this.#parts, process, run, start);
      const session = ran.reading.session || start.sessionId;
      stays = isWell && session !== "" && await this.#mayStay(process);
      if (stays) this.#keep(keyOf(run), { process, form, session, worker: run.env.SVC_WORKER_ID ?? "" });
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
    return !await process.hasStrays();
  }

  #keep(key: string, kept: Omit<Kept, "timer" | "forget">): void {
    const { warm: { keep, max_rss_mb }, waiting } = this.#parts;
    const { process } = kept;
    const forget = () => {
      if (this.#kept.get(key)?.process !== process) return;
      this.#take(key);
      this.#leaving.set(key, process.close().finally(() => this.#leaving.delete(key)));
    };
    this.#kept.set(key, { ...kept, forget, timer: setTimeout(forget, keep) });
    waiting.add(forget);
    void process.ended.catch(() => {}).then(forget);
    // Measured when the run is told already.
    void process.rss().then((bytes) => {
      if (bytes > max_rss_mb * MIB) forget();
    });
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
    return isYoung && !process.isLeaving && form === formOf(this.#parts, run);
  }
}

function keyOf({ env }: EngineRun): string {
  return `${env.SVC_WORKER_ID}\0${env.SVC_SESSION_KEY}`;
}
