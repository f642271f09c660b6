import { type Backoff, backoffMs } from "../base/backoff.ts";
import { type Clock, sleep } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";

const log = createLogger("run");

const RETRY: Backoff = { firstMs: 100, lastMs: 5_000 };
// A stop waits this long for an unreachable database. The next start treats the run as lost.
const STOP_MAX_MS = 10_000;

/** Stores the outcomes of runs with retries, so that an unreachable database does not lose a finished run. */
export class OutcomeWriter {
  readonly #clock: Clock;
  readonly #isBroken: () => boolean;
  #until = Infinity;

  /** Retries end when `broken` returns true, because the database cannot store anything any longer. */
  constructor(clock: Clock, broken: () => boolean) {
    this.#clock = clock;
    this.#isBroken = broken;
  }

  /** Limits all retries to STOP_MAX_MS, because the service stops. */
  hurry(): void {
    this.#until = Math.min(this.#until, this.#clock.monotonic() + STOP_MAX_MS);
  }

  /** Calls `write` until the outcome of the run `id` is stored or the retries end. Never throws. */
  async store(id: string, write: () => Promise<void>): Promise<void> {
    for (let attempt = 1;; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (this.#isBroken()) return;
        const late = this.#clock.monotonic() >= this.#until;
        log.error("Cannot store the outcome of the run {id}, {then}: {error}", {
          id,
          then: late ? "the next start treats it as lost" : "trying again",
          error,
        });
        if (late) return;
        await sleep(this.#clock, backoffMs(RETRY, attempt));
      }
    }
  }
}
