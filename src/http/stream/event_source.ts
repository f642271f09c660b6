import type { AccessEnd } from "../../api/call/authority.ts";
import type { Call } from "../../api/call/call.ts";
import type { StreamStart } from "../../api/call/stream_start.ts";
import type { StreamEnd } from "../../domain/call/vocabulary.ts";
import type { StreamDeps } from "../http_deps.ts";
import { type BodySource, buildBody } from "./body_source.ts";
import { DeliberateClose } from "../server/exchange.ts";

interface StreamStep {
  /** Encoded SSE frames, empty if there are no new events. Readers of the same step share the bytes. */
  frames: Uint8Array;
  after: number;
  /** Set when the streamed object was deleted, or when nothing follows. */
  ended?: StreamEnd | "complete";
}

interface StreamSource {
  /** Returns the reason why the caller's access has ended, or null. */
  whyEnded: () => Promise<AccessEnd>;
  /** Name of the notification for new events. */
  wakeup: string;
  after: number;
  /** First frames, such as a `reset`. */
  opening: string;
  step: (after: number) => Promise<StreamStep>;
  /** Formats the last frame. Default: the event `end` with the reason. */
  formatEnd?: (reason: StreamEnd | "complete") => string;
}

/** Interval of comments that keep proxies from closing a silent stream (contract 4, Stream). */
export const HEARTBEAT_MS = 15_000;
// Delay until a stream notices a revoked token or a lost notification (reliability SSE-6).
const CHECK_MS = 1_000;
/** A client that reads nothing for this long is disconnected. It continues with Last-Event-ID (reliability SSE-4). */
export const STALLED_MAX_MS = 60_000;

const encoder = new TextEncoder();
const NO_FRAMES = new Uint8Array();
const HEARTBEAT = encoder.encode(":\n\n");

/**
 * Builds a response of Server-Sent Events. The stream reads more rows only after the client has taken the previous ones, so a client that
 * stops reading costs one read. A client that reconnects sends the same query.
 */
export function buildEventStream(parts: StreamDeps, source: StreamSource): Response {
  return new Response(buildBody(new EventStream(parts, source)), {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

class EventStream implements BodySource {
  readonly #parts: StreamDeps;
  readonly #source: StreamSource;
  readonly #wakeup;
  readonly #gone = new AbortController();
  #after: number;
  #opening: string;
  #wroteAt: number;
  #stopWaiting = () => {};

  constructor(parts: StreamDeps, source: StreamSource) {
    this.#parts = parts;
    this.#source = source;
    this.#wakeup = parts.wakeups.listen(source.wakeup);
    this.#after = source.after;
    // The first bytes make every proxy forward the headers.
    this.#opening = `: connected\n\n${source.opening}`;
    this.#wroteAt = parts.clock.monotonic();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const { clock } = this.#parts;
    this.#stopWaiting();
    while (!this.#gone.signal.aborted) {
      if (this.#opening !== "") return this.#open(controller);
      const reason = await this.#endReason();
      // A caller without access gets no more events. At a shutdown the client gets the events so far.
      const step = reason === undefined || reason === "shutdown"
        ? await this.#source.step(this.#after)
        : { frames: NO_FRAMES, after: this.#after, ended: reason };
      if (this.#gone.signal.aborted) return;
      this.#after = step.after;
      const ended = step.ended ?? reason;
      if (step.frames.length > 0) this.#send(controller, step.frames);
      if (ended !== undefined) {
        const { formatEnd = formatEndFrame } = this.#source;
        const frame = formatEnd(ended);
        if (frame !== "") this.#send(controller, encoder.encode(frame));
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

/** Formats one event as an SSE frame. Data is JSON, so no content can break out of its line (reliability SSE-8). */
export function formatFrame(event: string, data: unknown, id?: number): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  // JSON text contains no line break that SSE knows. U+2028 is not a line break in SSE.
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${text}\n\n`;
}

function formatEndFrame(reason: StreamEnd | "complete"): string {
  return formatFrame("end", { reason });
}

export function encodeFrames(frames: readonly string[]): Uint8Array {
  return encoder.encode(frames.join(""));
}

export interface StreamClient {
  whyEnded: () => Promise<AccessEnd>;
  lastEventId: string | null;
  after: number | undefined;
}

export function buildStreamClient(request: Request, call: Call, after: number | undefined): StreamClient {
  return { whyEnded: call.findAccessEnd, lastEventId: request.headers.get("last-event-id"), after };
}

/** Finds the event number after which a client continues: null for "from now", -1 for an invalid Last-Event-ID (contract 4, Stream). */
export function findResumeNumber({ lastEventId, after }: StreamClient): number | null {
  if (lastEventId === null) return after ?? null;
  return /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : -1;
}

/** Builds the `reset` event for a client whose events are gone, or "" (reliability SSE-3). */
export function buildResetFrame({ after, reset }: StreamStart): string {
  return reset ? formatFrame("reset", { after }) : "";
}
