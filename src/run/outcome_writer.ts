import { type Backoff, backoffMs } from "../base/backoff.ts";
import { type Clock, sleep } from "../base/clock.ts";
import { logger } from "../base/log.ts";

const log = logger("run");

const RETRY: Backoff = { firstMs: 100, lastMs: 5_000 };
// A stop waits this long for an unreachable database. The next start finds the run open and tries it again.
const STOP_MAX_MS = 10_000;

/** Stores the outcomes of runs and tries again: a finished run must not be lost because the database is unreachable for a while. */
export class OutcomeWriter {
  readonly #clock: Clock;
  readonly #broken: () => boolean;
  #until = Infinity;

  /** `broken` returns true when nothing can be stored any more; then it stops trying. */
  constructor(clock: Clock, broken: () => boolean) {
    this.#clock = clock;
    this.#broken = broken;
  }

  /** The service stops: from now on it tries for at most STOP_MAX_MS. */
  hurry(): void {
    this.#until = Math.min(this.#until, this.#clock.monotonic() + STOP_MAX_MS);
  }

  /** Calls `write` until it has stored the outcome of the run `id`, or storing is given up. Never throws. */
  async store(id: string, write: () => Promise<void>): Promise<void> {
    for (let attempt = 1;; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (this.#broken()) return;
        const late = this.#clock.monotonic() >= this.#until;
        log.error("Cannot store the outcome of the run {id}, {then}: {error}", {
          id,
          then: late ? "the next start takes it for lost" : "trying again",
          error,
        });
        if (late) return;
        await sleep(this.#clock, backoffMs(RETRY, attempt));
      }
    }
  }
}
