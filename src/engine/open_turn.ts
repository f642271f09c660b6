import { type Ran, readingOf } from "./agent_process.ts";
import type { Start } from "./launch.ts";
import type { EngineRun } from "./engine.ts";
import { Limits, STOPPED_MIN_MS } from "./process/time_limits.ts";
import type { OpenParts, OpenProcess } from "./open_process.ts";
import type { ProcessEnd } from "./process/process.ts";
import { Watch } from "./early_exit.ts";

/** A process that waited did not take up its turn: nothing was asked of a model, and another process may. */
export class NotTakenUp extends Error {}

// It speaks as soon as it has read the words, long before a model does.
const TAKEN_UP_MAX_MS = 10_000;
// What an interrupted turn may take to end.
const TURN_END_MAX_MS = 2_000;

/** A turn and what became of the process. */
interface Turned {
  ran: Ran;
  /** The turn ended by itself or at our word, so that the process may have another one. */
  isWell: boolean;
}

/** Has an open process do one run (contract 19). Resolves when its final event is there, or the process has ended. Throws NotTakenUp. */
export async function runTurn(
  parts: OpenParts,
  process: OpenProcess,
  run: EngineRun,
  start: Start,
): Promise<Turned> {
  const { config, adapter, open } = parts;
  const onSession = (id: string) => {
    process.settled();
    run.onSession(id);
  };
  const watch = new Watch({ ...run, onSession }, start);
  const reading = readingOf(adapter, run, start, { watch, hear: (line) => process.hear(line) });
  const turn = new Turn(process, run, {
    watch,
    speaksFirst: open.speaksFirst,
    hasActed: () => reading.acted,
  });
  const { timeout: timeoutMs, idle_timeout: idleTimeoutMs } = config;
  const limits = new Limits({ timeoutMs, idleTimeoutMs, waitedMs: run.waitedMs }, (why) => turn.stop(why));
  try {
    run.onStart(process.pid);
    process.begin(run, start, {
      output(stream, chunk) {
        turn.heard = true;
        limits.heard();
        reading.add(stream, chunk);
      },
      take: (events) => reading.take(events),
    });
    const end = await turn.ended();
    watch.end();
    reading.end(null);
    const finished = end.reason === "exited" || watch.left;
    const isWell = reading.done !== null && !process.isLeaving &&
      (reading.done.ok || end.reason === "aborted");
    return { ran: { start, end, reading, finished, strayed: watch.strayed }, isWell };
  } finally {
    limits.end();
    watch.end();
    process.rest();
  }
}

interface TurnParts {
  watch: Watch;
  speaksFirst: boolean;
  /** Whether anything was said or done. */
  hasActed: () => boolean;
}

/** Waits for the end of a turn, and brings it about. */
class Turn {
  heard = false;
  readonly #process: OpenProcess;
  readonly #run: EngineRun;
  readonly #watch: Watch;
  readonly #speaksFirst: boolean;
  readonly #wasKept: boolean;
  readonly #hasActed: () => boolean;
  #isRefused = false;
  #reason: ProcessEnd["reason"] = "exited";
  #timers: ReturnType<typeof setTimeout>[] = [];

  constructor(process: OpenProcess, run: EngineRun, parts: TurnParts) {
    this.#process = process;
    this.#run = run;
    this.#watch = parts.watch;
    this.#speaksFirst = parts.speaksFirst;
    this.#hasActed = parts.hasActed;
    this.#wasKept = process.turns > 0;
  }

  /** Ends the turn. When a person wants that, the process may stay; else it ends, too. */
  stop(reason: ProcessEnd["reason"]): void {
    if (this.#reason !== "exited") return;
    this.#reason = reason;
    this.#watch.end();
    // One that has not begun its turn yet may do it behind the interruption.
    const hasBegun = this.heard || !this.#speaksFirst;
    if (reason !== "aborted" || !this.#run.signal.aborted || !hasBegun) return void this.#process.end();
    this.#process.interrupt();
    this.#timers.push(setTimeout(() => void this.#process.end(), TURN_END_MAX_MS));
  }

  /** How it ended, when it has: with everything that it started, unless the process stays. Throws NotTakenUp. */
  async ended(): Promise<ProcessEnd> {
    const { signal, finished } = this.#watch;
    const onAbort = () => this.stop("aborted");
    const { promise: done, resolve } = Promise.withResolvers<null>();
    const onDone = () => resolve(null);
    signal.addEventListener("abort", onAbort, { once: true });
    finished.signal.addEventListener("abort", onDone, { once: true });
    if (signal.aborted) onAbort();
    if (finished.signal.aborted) onDone();
    if (this.#wasKept && this.#speaksFirst) {
      this.#expect(TAKEN_UP_MAX_MS);
    }
    try {
      await Promise.race([done, this.#process.ended]);
      const code = this.#process.isLeaving ? (await this.#process.ended).code : 0;
      if (this.#wasKept && this.#reason === "exited" && !this.#wasTakenUp()) throw new NotTakenUp();
      return { reason: this.#reason, code };
    } finally {
      this.#timers.forEach(clearTimeout);
      signal.removeEventListener("abort", onAbort);
      finished.signal.removeEventListener("abort", onDone);
    }
  }

  // What it said while the service itself was stopped is read first.
  #expect(ms: number): void {
    const due = performance.now() + ms;
    this.#timers.push(setTimeout(() => {
      if (performance.now() - due > STOPPED_MIN_MS) this.#expect(STOPPED_MIN_MS);
      else this.#refuse();
    }, ms));
  }

  #refuse(): void {
    if (this.heard) return;
    this.#isRefused = true;
    void this.#process.end();
  }

  // While it is being ended for its silence it may still say that it begins.
  #wasTakenUp(): boolean {
    return this.heard && !(this.#isRefused && !this.#hasActed());
  }
}
