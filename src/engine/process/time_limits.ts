/** A timer that fires this late shows that the service was stopped, by a signal or with its machine (reliability CHD-9). */
export const STOPPED_MIN_MS = 1_000;
// A timer with a longer delay fires immediately.
const TIMER_MAX_MS = 2_147_483_647;

/** Time limits of a run. Absent: none. */
interface LimitTimes {
  timeoutMs?: number;
  idleTimeoutMs?: number;
  /** How long the run has waited for a person so far, in ms. This time does not count as silence. */
  waitedMs?: () => number;
}

/** Calls `onLimit` once when a run lasts too long or is silent for too long. If the service was suspended, pending output is read first. */
export class TimeLimits {
  readonly #times: Required<LimitTimes>;
  readonly #onLimit: (reason: "timeout" | "idle_timeout") => void;
  readonly #deadline: number;
  #idle: ReturnType<typeof setTimeout>;
  #total: ReturnType<typeof setTimeout>;
  #outputAt = performance.now();
  /** Value of waitedMs() at that time. */
  #waitedThen: number;

  constructor(times: LimitTimes, onLimit: (reason: "timeout" | "idle_timeout") => void) {
    const { timeoutMs = Infinity, idleTimeoutMs = Infinity, waitedMs = () => 0 } = times;
    this.#times = { timeoutMs, idleTimeoutMs, waitedMs };
    this.#onLimit = onLimit;
    this.#waitedThen = waitedMs();
    this.#deadline = performance.now() + timeoutMs;
    this.#total = setTimeout(() => this.#checkTotal(), Math.min(timeoutMs, TIMER_MAX_MS));
    this.#idle = setTimeout(() => this.#checkIdle(), Math.min(idleTimeoutMs, TIMER_MAX_MS));
  }

  /** Restarts the idle limit after output. */
  restart(): void {
    this.#outputAt = performance.now();
    this.#waitedThen = this.#times.waitedMs();
  }

  end(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#idle);
  }

  // A run may have ended while the service was suspended. The service must read that end before the limit applies.
  #checkTotal(): void {
    const left = this.#deadline - performance.now();
    if (left > TIMER_MAX_MS) this.#total = setTimeout(() => this.#checkTotal(), TIMER_MAX_MS);
    else if (left < -STOPPED_MIN_MS) this.#total = setTimeout(() => this.#onLimit("timeout"), STOPPED_MIN_MS);
    else this.#onLimit("timeout");
  }

  // A single timer for the whole run instead of one for each piece of output.
  #checkIdle(): void {
    const { idleTimeoutMs, waitedMs } = this.#times;
    const now = performance.now();
    const waited = waitedMs() - this.#waitedThen;
    let left = this.#outputAt + waited + idleTimeoutMs - now;
    if (left < -STOPPED_MIN_MS) {
      // The service was suspended and could not read.
      this.restart();
      left = idleTimeoutMs;
    }
    if (left <= 0) this.#onLimit("idle_timeout");
    else if (performance.now() < this.#deadline) {
      this.#idle = setTimeout(() => this.#checkIdle(), Math.min(left, TIMER_MAX_MS));
    }
  }
}
