import type { Clock } from "./clock.ts";

interface Wait {
  /** How many requests of the run wait now. */
  open: number;
  /** Since when, on the monotonic clock. */
  since: number;
  /** Ms of the waits before this one. */
  before: number;
}

/**
 * Which runs wait for a person at the moment, and for how long they have. While one does, its idle time-out stands still and its
 * slot is free (contract 12). Memory is enough: a wait is a request, and ends with the server.
 */
export class HumanWaits {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Wait>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The run begins to wait. Returns whether it did not wait before. */
  begin(executionId: string): boolean {
    const wait = this.#runs.get(executionId) ?? { open: 0, since: 0, before: 0 };
    this.#runs.set(executionId, wait);
    if (wait.open++ > 0) return false;
    wait.since = this.#clock.monotonic();
    return true;
  }

  /** One wait of the run is over. Returns whether it was the last one. */
  end(executionId: string): boolean {
    const wait = this.#runs.get(executionId);
    if (wait === undefined || --wait.open > 0) return false;
    wait.before += this.#clock.monotonic() - wait.since;
    return true;
  }

  /** The run has ended: nothing is known of it any more. */
  forget(executionId: string): void {
    this.#runs.delete(executionId);
  }

  /** How many of these runs wait. */
  countOf(executionIds: readonly string[]): number {
    return executionIds.filter((id) => (this.#runs.get(id)?.open ?? 0) > 0).length;
  }

  /** How long the run has waited in all, in ms. */
  waitedMs(executionId: string): number {
    const wait = this.#runs.get(executionId);
    if (wait === undefined) return 0;
    return wait.before + (wait.open > 0 ? this.#clock.monotonic() - wait.since : 0);
  }
}
