import type { Clock } from "../base/clock.ts";
import type { Moment } from "./service_client.ts";

/** The lease of a run. The lease counts from the sending of the last answered request, by the clock that shows more time (contract 18). */
export class Lease {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #from: Moment;

  constructor(clock: Clock, leaseMs: number, sentAt: Moment) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#from = sentAt;
  }

  /** Renews the lease from the sending of an answered beat. */
  renew(sentAt: Moment): void {
    if (sentAt.monotonic > this.#from.monotonic) this.#from = sentAt;
  }

  /** The rest of the lease in ms. Negative when it has expired. */
  get leftMs(): number {
    const { wall, monotonic } = this.#from;
    const gone = Math.max(this.#clock.now() - wall, this.#clock.monotonic() - monotonic);
    return this.#leaseMs - gone;
  }
}
