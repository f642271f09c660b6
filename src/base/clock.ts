/** The time. Everything that waits or stores a time takes a Clock, so that tests can set it. */
export interface Clock {
  /** Wall time in Unix ms. It may jump. */
  now(): number;
  /** Ms since an arbitrary start. It never goes back. */
  monotonic(): number;
  /** Calls `call` after `ms` of monotonic time, unless the returned function is called before. */
  after(ms: number, call: () => void): () => void;
}

// A timer longer than 2^31-1 ms fires at once, so longer waits are cut: the caller has to check the time and wait again.
const TIMER_MAX_MS = 2_147_483_647;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(Math.max(0, ms), TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` of the clock's monotonic time, or at once, without an error, when `signal` aborts. */
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
