/** Time as the service sees it. Everything that waits or stamps takes a Clock, so that tests can move it by hand. */
export interface Clock {
  /** Wall time in Unix ms. It may jump. */
  now(): number;
  /** Ms since an arbitrary start. It never goes back. */
  monotonic(): number;
  /** Resolves after `ms` of monotonic time, or at once and quietly when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// A timer longer than 2^31-1 ms fires at once, so longer waits are cut: whoever waits asks again.
const TIMER_MAX_MS = 2_147_483_647;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const finish = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      const timer = setTimeout(finish, Math.min(Math.max(0, ms), TIMER_MAX_MS));
      signal?.addEventListener("abort", finish, { once: true });
    });
  },
};
