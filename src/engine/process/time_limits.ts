/** A timer that is so late says that the service itself was stopped, by a signal or with its machine (reliability CHD-9). */
export const STOPPED_MIN_MS = 1_000;
// A longer timer fires at once.
const TIMER_MAX_MS = 2_147_483_647;

/** How long a run may take, and be silent. */
interface LimitTimes {
  timeoutMs: number;
  idleTimeoutMs: number;
  /** How long the run has waited for a person so far, in ms: idleTimeoutMs stands still meanwhile. */
  waitedMs: () => number;
}

/** Says once when a run has lasted, or been silent, for too long. A service that was itself stopped meanwhile hears first. */
export class Limits {
  readonly #times: LimitTimes;
  readonly #over: (reason: "timeout" | "idle_timeout") => void;
  readonly #deadline: number;
  #idle: ReturnType<typeof setTimeout>;
  #total: ReturnType<typeof setTimeout>;
  #heardAt = performance.now();
  /** How long it had waited for a person then. */
  #waitedThen: number;

  constructor(times: LimitTimes, over: (reason: "timeout" | "idle_timeout") => void) {
    this.#times = times;
    this.#over = over;
    const { timeoutMs, idleTimeoutMs, waitedMs } = times;
    this.#waitedThen = waitedMs();
    this.#deadline = performance.now() + timeoutMs;
    this.#total = setTimeout(() => this.#checkTotal(), Math.min(timeoutMs, TIMER_MAX_MS));
    this.#idle = setTimeout(() => this.#checkIdle(), Math.min(idleTimeoutMs, TIMER_MAX_MS));
  }

  /** Something came: the silence begins anew. */
  heard(): void {
    this.#heardAt = performance.now();
    this.#waitedThen = this.#times.waitedMs();
  }

  /** Nothing is said any more. */
  end(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#idle);
  }

  // The end of a run that came while the service itself was stopped is noticed first.
  #checkTotal(): void {
    const late = performance.now() - this.#deadline > STOPPED_MIN_MS;
    if (late) this.#total = setTimeout(() => this.#over("timeout"), STOPPED_MIN_MS);
    else this.#over("timeout");
  }

  // One timer for the whole run instead of one per piece of output.
  #checkIdle(): void {
    const { idleTimeoutMs, waitedMs } = this.#times;
    const now = performance.now();
    const waited = waitedMs() - this.#waitedThen;
    let left = this.#heardAt + waited + idleTimeoutMs - now;
    if (left < -STOPPED_MIN_MS) {
      // The service was stopped and could not hear anything.
      this.heard();
      left = idleTimeoutMs;
    }
    if (left <= 0) this.#over("idle_timeout");
    else if (performance.now() < this.#deadline) this.#idle = setTimeout(() => this.#checkIdle(), left);
  }
}
