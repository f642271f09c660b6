import type { TraceSpan } from "../../domain/system/trace.ts";
import { createLogger } from "../../base/log.ts";

const log = createLogger("telemetry");

/** Spans that wait for the collector. More are dropped and counted. */
const SPANS_WAITING_MAX = 2_048;
/** Spans of one request. */
const SPANS_PER_REQUEST_MAX = 512;
// Requests that fail follow each other at this distance, so that a dead collector costs nothing.
const RETRY_MS = 5_000;
// Collects the spans of a moment in one request.
const PAUSE_MS = 500;
const STOP_WAIT_MAX_MS = 2_000;

/** Sends spans to a collector. Rejects if the collector does not take them. */
export type SpanSender = (spans: readonly TraceSpan[]) => Promise<void>;

/** Spans on their way to a collector, for which no message and no run waits. */
export class SpanQueue {
  readonly #send: SpanSender;
  #waiting: TraceSpan[] = [];
  #dropped = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | null = null;
  #isDown = false;
  #isStopped = false;

  constructor(send: SpanSender) {
    this.#send = send;
  }

  /** How many spans were dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  add(spans: readonly TraceSpan[]): void {
    const room = SPANS_WAITING_MAX - this.#waiting.length;
    this.#waiting.push(...spans.slice(0, room));
    this.#dropped += Math.max(0, spans.length - room);
    this.#plan(PAUSE_MS);
  }

  /** Sends what waits once more, for at most 2 s. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, STOP_WAIT_MAX_MS);
    const flush = async () => {
      await this.#sending;
      while (this.#waiting.length > 0 && !this.#isDown) await this.#sendNext();
    };
    await Promise.race([flush(), late.promise]);
    clearTimeout(timer);
  }

  #plan(ms: number): void {
    if (
      this.#isStopped || this.#timer !== undefined || this.#sending !== null || this.#waiting.length === 0
    ) {
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sending = this.#sendNext().finally(() => {
        this.#sending = null;
        this.#plan(this.#isDown ? RETRY_MS : 0);
      });
    }, ms);
  }

  // Spans of a failed request wait for the next one.
  async #sendNext(): Promise<void> {
    const spans = this.#waiting.splice(0, SPANS_PER_REQUEST_MAX);
    try {
      await this.#send(spans);
      if (this.#isDown) log.info("The collector of traces takes spans again");
      this.#isDown = false;
    } catch (error) {
      if (!this.#isDown) log.warning("The collector of traces takes no spans: {error}", { error });
      this.#isDown = true;
      const room = SPANS_WAITING_MAX - this.#waiting.length;
      this.#dropped += Math.max(0, spans.length - room);
      this.#waiting.unshift(...spans.slice(Math.max(0, spans.length - room)));
    }
  }
}
