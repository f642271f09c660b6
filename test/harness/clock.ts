import { type Clock, systemClock } from "../../src/base/clock.ts";

interface Timer {
  until: number;
  call: () => void;
}

/**
 * A clock that only the test changes. advance() moves wall time and monotonic time together; jump() moves
 * wall time only.
 */
export class TestClock implements Clock {
  #now: number;
  #monotonic = 0;
  #waiting = new Set<Timer>();

  constructor(now: number | string = "2026-01-05T08:00:00Z") {
    this.#now = new Date(now).getTime();
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(ms: number, call: () => void): () => void {
    const waiting = { until: this.#monotonic + ms, call };
    this.#waiting.add(waiting);
    return () => this.#waiting.delete(waiting);
  }

  advance(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
    for (const waiting of [...this.#waiting]) {
      if (waiting.until > this.#monotonic) continue;
      this.#waiting.delete(waiting);
      waiting.call();
    }
  }

  /** Sets the wall clock. No monotonic time passes. */
  jump(to: number | string): void {
    this.#now = new Date(to).getTime();
  }
}

/** Returns the machine's clock sped up by `factor`, so that the service's waits end sooner. */
export function createFastClock(factor: number): Clock {
  const startedAt = Date.now();
  const began = performance.now();
  const passedMs = () => (performance.now() - began) * factor;
  return {
    now: () => Math.floor(startedAt + passedMs()),
    monotonic: passedMs,
    after: (ms, call) => systemClock.after(ms / factor, call),
  };
}
