import type { Clock } from "../../src/clock.ts";

interface Sleeper {
  until: number;
  wake: () => void;
}

/** A clock that only a test moves. Wall time and monotonic time move together with advance() and apart with jump(). */
export class TestClock implements Clock {
  #now: number;
  #monotonic = 0;
  #sleepers = new Set<Sleeper>();

  constructor(now: number | string = "2026-01-05T08:00:00Z") {
    this.#now = new Date(now).getTime();
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted || ms <= 0) return resolve();
      const sleeper = {
        until: this.#monotonic + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal?.removeEventListener("abort", sleeper.wake);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", sleeper.wake, { once: true });
    });
  }

  /** Lets `ms` pass for everything. */
  advance(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
    for (const sleeper of [...this.#sleepers]) if (sleeper.until <= this.#monotonic) sleeper.wake();
  }

  /** Sets the wall clock without time having passed: somebody changed it. */
  jump(to: number | string): void {
    this.#now = new Date(to).getTime();
  }
}
