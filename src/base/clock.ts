/** The time. Everything that waits or stores a time takes a Clock, so that tests can set it. */
export interface Clock {
  /** Wall time in Unix ms. May jump. */
  now(): number;
  /** Ms since an arbitrary start. Never goes back. */
  monotonic(): number;
  /** Runs `call` after `ms` of monotonic time. The returned function cancels it. */
  after(ms: number, call: () => void): () => void;
}

// A timer longer than 2^31-1 ms fires immediately, so longer waits are capped. The caller checks the time and waits again.
const TIMER_MAX_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(Math.max(0, ms), TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` of monotonic time, or as soon as `signal` aborts. Never rejects. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = () => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(ms, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
