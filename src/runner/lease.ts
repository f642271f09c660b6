import type { Clock } from "../base/clock.ts";
import type { Moment } from "./service_client.ts";

/** How long a run belongs to this runner: counted from when the last answered request was sent, by the earlier of both clocks (contract 18). */
export class Lease {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #from: Moment;

  constructor(clock: Clock, leaseMs: number, sentAt: Moment) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#from = sentAt;
  }

  /** A beat that was sent then was answered. */
  renew(sentAt: Moment): void {
    if (sentAt.monotonic > this.#from.monotonic) this.#from = sentAt;
  }

  /** How long it lasts still, in ms; less than 0 when it is over. */
  get leftMs(): number {
    const { wall, monotonic } = this.#from;
    const gone = Math.max(this.#clock.now() - wall, this.#clock.monotonic() - monotonic);
    return this.#leaseMs - gone;
  }
}
