import { type Backoff, backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { Wakeups } from "../../base/wakeups.ts";
import type { Database } from "../../store/db/database.ts";

/** Pause of stages that every commit wakes and no caller waits for, so that one round covers all commits of a message. */
export const ASIDE_MS = 10;
/** A stage that no wakeup reaches still finds its work within this time (architecture, sentence 1). */
export const POLL_MS = 1_000;
// Back-off after an error.
const RETRY: Backoff = { firstMs: 200, lastMs: 5_000 };
// A longer round counts as unhealthy (reliability CRN-9).
const STALLED_MS = 60_000;

export interface StageServices {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
}

interface StageOptions {
  name: string;
  wakeup: string;
  /** Longest wait between two rounds. Default: POLL_MS. */
  pollMs?: number;
  /** How long a round may take before the stage counts as unhealthy. Default: STALLED_MS. */
  stalledMs?: number;
  /** Pause after a wakeup, so that one round covers several commits. Default: 0. A step that returned 0 does not pause. */
  pauseMs?: number;
  /** Does all due work, and returns in how many ms there is more (Infinity: unknown). The stage logs an error and retries. */
  step: (signal: AbortSignal) => Promise<number>;
}

/** A loop over rows. Between two rounds it waits for its wakeup, the next due time, or the poll, whichever comes first. */
export class Stage {
  readonly name: string;
  readonly #services: Pick<StageServices, "clock" | "wakeups">;
  readonly #options: StageOptions;
  readonly #stopped = new AbortController();
  #loop: Promise<void> | null = null;
  #busySince: number | null = null;
  #rounds = 0;

  constructor(services: Pick<StageServices, "clock" | "wakeups">, options: StageOptions) {
    this.name = options.name;
    this.#services = services;
    this.#options = options;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Stops after the current round. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
  }

  wake(): void {
    this.#services.wakeups.notify(this.#options.wakeup);
  }

  /** Whether the stage waits for work. */
  get idle(): boolean {
    return this.#busySince === null;
  }

  /** Number of finished rounds. Tests wait for the next one. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Whether the stage is idle, or its round has not exceeded the limit. */
  get well(): boolean {
    const { stalledMs = STALLED_MS } = this.#options;
    return this.#busySince === null || this.#services.clock.monotonic() - this.#busySince < stalledMs;
  }

  async #run(): Promise<void> {
    const { clock, wakeups } = this.#services;
    const { wakeup, name, step, pollMs = POLL_MS, pauseMs = 0 } = this.#options;
    const { signal } = this.#stopped;
    const log = createLogger(name);
    const listener = wakeups.listen(wakeup);
    let failures = 0;
    while (!signal.aborted) {
      let waitMs: number;
      this.#busySince = clock.monotonic();
      try {
        waitMs = Math.min(await step(signal), pollMs);
        failures = 0;
      } catch (error) {
        waitMs = backoffMs(RETRY, ++failures);
        log.error("{stage} failed and tries again in {ms} ms: {error}", { stage: name, ms: waitMs, error });
      }
      this.#busySince = null;
      this.#rounds++;
      await listener.next(clock, Math.max(0, waitMs), signal);
      if (pauseMs === 0 || waitMs <= 0 || signal.aborted) continue;
      this.#busySince = clock.monotonic();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      listener.forget();
    }
    listener.close();
  }
}

// How long a stop waits for pending answers.
const STOP_WAIT_MAX_MS = 2_000;

/** Resolves when all promises have, or after 2 s. The next start handles what is still pending. */
export async function waitBriefly(promises: Iterable<Promise<unknown>>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, STOP_WAIT_MAX_MS);
  await Promise.race([Promise.all(promises), late.promise]);
  clearTimeout(timer);
}
