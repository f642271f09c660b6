import type { Clock } from "./clock.ts";

interface Wait {
  /** Number of open wait requests of the run. */
  open: number;
  /** Start of the current wait on the monotonic clock. */
  since: number;
  /** Ms of earlier waits. */
  before: number;
}

/**
 * Tracks which runs wait for a person, and for how long. During a wait the run's idle timeout is suspended and its slot is
 * free (contract 12). Memory is enough: a wait is a request and ends with the server.
 */
export class HumanWaits {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Wait>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a wait. Returns whether it is the only one of the run. */
  begin(executionId: string): boolean {
    const wait = this.#runs.get(executionId) ?? { open: 0, since: 0, before: 0 };
    this.#runs.set(executionId, wait);
    if (wait.open++ > 0) return false;
    wait.since = this.#clock.monotonic();
    return true;
  }

  /** Ends a wait. Returns whether it was the last one of the run. */
  end(executionId: string): boolean {
    const wait = this.#runs.get(executionId);
    if (wait === undefined || --wait.open > 0) return false;
    wait.before += this.#clock.monotonic() - wait.since;
    return true;
  }

  forget(executionId: string): void {
    this.#runs.delete(executionId);
  }

  /** Counts the given runs that wait. */
  count(executionIds: readonly string[]): number {
    return executionIds.filter((id) => (this.#runs.get(id)?.open ?? 0) > 0).length;
  }

  /** Returns how long the run has waited in total, in ms. */
  getWaitedMs(executionId: string): number {
    const wait = this.#runs.get(executionId);
    if (wait === undefined) return 0;
    return wait.before + (wait.open > 0 ? this.#clock.monotonic() - wait.since : 0);
  }
}
