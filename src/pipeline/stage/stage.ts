import { type Backoff, backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Wakeups } from "../../base/wakeups.ts";

/** The pause of a stage that every commit wakes and nobody waits for: a message is three commits, and needs one look of it. */
export const ASIDE_MS = 10;
/** Without any bell, work is found within this time (architecture, sentence 1). */
export const POLL_MS = 1_000;
// How soon a stage tries again after an error.
const RETRY: Backoff = { firstMs: 200, lastMs: 5_000 };
// A round that takes longer means that the stage is not healthy (reliability CRN-9).
const STALLED_MS = 60_000;

/** The parts of a stage. */
interface StageParts {
  name: string;
  wakeup: string;
  clock: Clock;
  wakeups: Wakeups;
  /** The longest wait between two rounds; POLL_MS by default. */
  pollMs?: number;
  /** How long one round may take before the stage counts as not well; STALLED_MS by default. */
  stalledMs?: number;
  /** How long it waits after its bell: what is committed meanwhile is one look. 0 by default. A step that has more to do does not wait. */
  pauseMs?: number;
  /**
   * Does all work that is due and returns in how many ms there will be more, as far as it knows (Infinity: none). An error
   * is logged, and the step is called again later.
   */
  step: (signal: AbortSignal) => Promise<number>;
}

/**
 * One part of the pipeline: a loop over rows. Between two rounds it waits for its bell, for the next due time, or
 * for the poll, whichever comes first. It runs until stop().
 */
export class Stage {
  readonly name: string;
  readonly #parts: StageParts;
  readonly #stopped = new AbortController();
  #loop: Promise<void> | null = null;
  #busySince: number | null = null;
  #rounds = 0;

  constructor(parts: StageParts) {
    this.name = parts.name;
    this.#parts = parts;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Waits for the current round, then ends. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
  }

  wake(): void {
    this.#parts.wakeups.notify(this.#parts.wakeup);
  }

  /** Waiting for the next thing to do. */
  get idle(): boolean {
    return this.#busySince === null;
  }

  /** How many rounds there were; tests wait for the next one with it. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Alive: waiting, or not in one round for too long. */
  get well(): boolean {
    const { clock, stalledMs = STALLED_MS } = this.#parts;
    return this.#busySince === null || clock.monotonic() - this.#busySince < stalledMs;
  }

  async #run(): Promise<void> {
    const { clock, wakeups, wakeup, name, step, pollMs = POLL_MS, pauseMs = 0 } = this.#parts;
    const { signal } = this.#stopped;
    const log = logger(name);
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
