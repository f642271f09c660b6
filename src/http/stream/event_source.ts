import type { Ended } from "../../api/call/authority.ts";
import type { Call } from "../../api/call/call.ts";
import type { StreamStart } from "../../api/call/stream_start.ts";
import type { StreamEnd } from "../../domain/call/vocabulary.ts";
import type { StreamParts } from "../http_deps.ts";
import { bodyFrom, type BodySource } from "./body_source.ts";
import { DeliberateClose } from "../server/exchange.ts";

/** One step of a stream: what to send, and where to continue. */
interface StreamStep {
  /** Frames in SSE form, encoded; empty for nothing new. Readers of the same step share them. */
  frames: Uint8Array;
  after: number;
  /** Set when the streamed object was deleted. */
  ended?: StreamEnd;
}

/** What is streamed: a view of the journal after a number. */
interface StreamSource {
  /** Why the reader may read no longer, or null. */
  whyEnded: () => Promise<Ended>;
  /** Bell that rings when there may be something new. */
  wakeup: string;
  after: number;
  /** Sent first, such as a `reset`. */
  opening: string;
  step: (after: number) => Promise<StreamStep>;
}

/** Comment that keeps proxies from closing a silent stream (contract 4, Stream). */
export const HEARTBEAT_MS = 15_000;
// How soon a revoked token or a lost bell is noticed (reliability SSE-6).
const CHECK_MS = 1_000;
/** A client that has not read for so long is disconnected; it continues with Last-Event-ID (reliability SSE-4). */
export const STALLED_MAX_MS = 60_000;

const encoder = new TextEncoder();
const NO_FRAMES = new Uint8Array();
const HEARTBEAT = encoder.encode(":\n\n");

/**
 * A Server-Sent Events answer. Rows are read when the client takes more, so a client that stops reading costs one
 * step: there is no buffer that could overflow, and reconnecting is the same query.
 */
export function eventStream(parts: StreamParts, source: StreamSource): Response {
  return new Response(bodyFrom(new EventStream(parts, source)), {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

class EventStream implements BodySource {
  readonly #parts: StreamParts;
  readonly #source: StreamSource;
  readonly #wakeup;
  readonly #gone = new AbortController();
  #after: number;
  #opening: string;
  #wroteAt: number;
  #stopWaiting = () => {};

  constructor(parts: StreamParts, source: StreamSource) {
    this.#parts = parts;
    this.#source = source;
    this.#wakeup = parts.wakeups.listen(source.wakeup);
    this.#after = source.after;
    // The first bytes make every proxy send the headers on.
    this.#opening = `: connected\n\n${source.opening}`;
    this.#wroteAt = parts.clock.monotonic();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const { clock } = this.#parts;
    this.#stopWaiting();
    while (!this.#gone.signal.aborted) {
      if (this.#opening !== "") return this.#open(controller);
      const reason = await this.#endReason();
      // Who may read no longer gets nothing more; at a stop the client gets what is there.
      const step = reason === undefined || reason === "shutdown"
        ? await this.#source.step(this.#after)
        : { frames: NO_FRAMES, after: this.#after, ended: reason };
      if (this.#gone.signal.aborted) return;
      this.#after = step.after;
      const ended = step.ended ?? reason;
      if (step.frames.length > 0) this.#send(controller, step.frames);
      if (ended !== undefined) {
        this.#send(controller, encoder.encode(frame("end", { reason: ended })));
        controller.close();
        return this.close();
      }
      if (step.frames.length > 0) return;
      const silentMs = clock.monotonic() - this.#wroteAt;
      if (silentMs >= HEARTBEAT_MS) return this.#send(controller, HEARTBEAT);
      await this.#wakeup.next(
        clock,
        Math.min(CHECK_MS, HEARTBEAT_MS - silentMs),
        this.#parts.lifecycle.stopping,
      );
    }
  }

  close(): void {
    this.#stopWaiting();
    this.#gone.abort();
    this.#wakeup.close();
  }

  #open(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#send(controller, encoder.encode(this.#opening));
    this.#opening = "";
  }

  #send(controller: ReadableStreamDefaultController<Uint8Array>, frames: Uint8Array): void {
    const { clock } = this.#parts;
    this.#wroteAt = clock.monotonic();
    controller.enqueue(frames);
    this.#stopWaiting();
    this.#stopWaiting = clock.after(STALLED_MAX_MS, () => {
      controller.error(new DeliberateClose("the client does not read"));
      this.close();
    });
  }

  async #endReason(): Promise<StreamEnd | undefined> {
    if (this.#parts.lifecycle.stopping.aborted) return "shutdown";
    return await this.#source.whyEnded() ?? undefined;
  }
}

/** One event in SSE form. Data is JSON, so no content can break out of its line (reliability SSE-8). */
export function frame(event: string, data: unknown, id?: number): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  // U+2028 and the like are no line breaks in SSE, and JSON has no others.
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${text}\n\n`;
}

/** Frames as they are sent. */
export function encoded(frames: readonly string[]): Uint8Array {
  return encoder.encode(frames.join(""));
}

/** Who opens a stream, and where to continue. */
export interface StreamClient {
  whyEnded: () => Promise<Ended>;
  lastEventId: string | null;
  after: number | undefined;
}

/** The client behind a request for a stream. */
export function clientOf(request: Request, call: Call, after: number | undefined): StreamClient {
  return { whyEnded: call.ended, lastEventId: request.headers.get("last-event-id"), after };
}

/** The number after which a client wants to continue; null for now, -1 for what cannot be a number of ours (contract 4, Stream). */
export function wantedEvent({ lastEventId, after }: StreamClient): number | null {
  if (lastEventId === null) return after ?? null;
  return /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : -1;
}

/** The event that tells a client to forget what it knows; "" when it need not (reliability SSE-3). */
export function resetFrame({ after, reset }: StreamStart): string {
  return reset ? frame("reset", { after }) : "";
}
