import { turn } from "../base/turn.ts";
import { ENDS_PER_REQUEST_MAX, type RunEnd, type RunEndsStored } from "../domain/runner.ts";
import type { Link } from "./link.ts";

const SEND_TIMEOUT_MS = 10_000;

/** An end that is about to be told. */
interface Waiting {
  id: string;
  end: RunEnd;
  signal: AbortSignal;
  resolve: (stored: boolean) => void;
}

/** Tells the ends of runs that were over at once, one request at a time: those that come meanwhile go together. */
export class EndBundle {
  readonly #link: Link;
  readonly #waiting: Waiting[] = [];
  #sending = false;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Whether the service has stored this end; otherwise it has to be told by itself. False as soon as `signal` aborts. Never throws. */
  tell(id: string, end: RunEnd, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(false), { once: true });
      this.#waiting.push({ id, end, signal, resolve });
      if (!this.#sending) void this.#send();
    });
  }

  async #send(): Promise<void> {
    this.#sending = true;
    // The runs of one claim end in the same turn.
    await turn();
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, ENDS_PER_REQUEST_MAX).filter(({ signal }) => !signal.aborted);
      const stored = some.length === 0 ? [] : await this.#post(some);
      for (const { id, resolve } of some) resolve(stored.includes(id));
    }
    this.#sending = false;
  }

  async #post(some: readonly Waiting[]): Promise<string[]> {
    const ends = some.map(({ id, end }) => ({ id, ...end }));
    const sending = { timeoutMs: SEND_TIMEOUT_MS };
    try {
      const { value } = await this.#link.post<Partial<RunEndsStored>>(
        "/api/runs/outcomes",
        { ends },
        sending,
      );
      return value.stored ?? [];
    } catch {
      // Why, each of them learns when it is told by itself.
      return [];
    }
  }
}
