/** Time as the service sees it. Everything that waits or stamps takes a Clock, so that tests can move it by hand. */
export interface Clock {
  /** Wall time in Unix ms. It may jump. */
  now(): number;
  /** Ms since an arbitrary start. It never goes back. */
  monotonic(): number;
  /** Calls back after `ms` of monotonic time, unless it is cancelled by calling what is answered. */
  after(ms: number, call: () => void): () => void;
}

// A timer longer than 2^31-1 ms fires at once, so longer waits are cut: whoever waits asks again.
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

/** Resolves after `ms` of the clock's monotonic time, or at once and quietly when `signal` aborts. */
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
