import type { Clock } from "../../base/clock.ts";
import { ServiceError } from "../../domain/call/error.ts";

/** Longest wait for the next piece of a body (reliability BKP-4). */
export const BODY_PIECE_MAX_MS = 30_000;
// Without this minimum rate, averaged over the whole wait, a client could occupy a connection permanently.
const BODY_MIN_BYTES_PER_S = 4 * 1024;

type Reader = ReadableStreamDefaultReader<Uint8Array>;
type Clocked = Pick<Clock, "monotonic" | "after">;

/** Reads the body of a request in pieces. The time limits count only the wait for the client, not for our disk. */
export class IncomingBody {
  readonly #reader: Reader;
  readonly #clock: Clocked;
  #waitedMs = 0;
  #bytes = 0;
  #stopped: ServiceError | null = null;
  #stopReading: (error: ServiceError) => void = () => {};

  constructor(request: Request & { body: ReadableStream<Uint8Array> }, clock: Clocked) {
    this.#reader = request.body.getReader();
    this.#clock = clock;
  }

  /** Returns null at the end. Throws `invalid_request` when the next piece is late, and errors of the connection. */
  async read(): Promise<Uint8Array | null> {
    if (this.#stopped !== null) throw this.#stopped;
    const earned = this.#bytes / BODY_MIN_BYTES_PER_S * 1_000;
    const patienceMs = Math.min(BODY_PIECE_MAX_MS, BODY_PIECE_MAX_MS + earned - this.#waitedMs);
    const started = this.#clock.monotonic();
    const { promise: late, reject } = Promise.withResolvers<never>();
    this.#stopReading = reject;
    const cancel = this.#clock.after(Math.max(0, patienceMs), () => {
      reject(new ServiceError("invalid_request", "Cannot read the body: it arrived too slowly"));
    });
    try {
      const { done, value } = await Promise.race([this.#reader.read(), late]);
      if (done) return null;
      this.#bytes += value.length;
      return value;
    } finally {
      cancel();
      this.#waitedMs += this.#clock.monotonic() - started;
    }
  }

  /** Makes this read and all later reads fail with an error. */
  stop(error: ServiceError): void {
    this.#stopped = error;
    this.#stopReading(error);
  }
}

export function openIncomingBody(request: Request, clock: Clocked): IncomingBody | null {
  return hasBody(request) ? new IncomingBody(request, clock) : null;
}

function hasBody(request: Request): request is Request & { body: ReadableStream<Uint8Array> } {
  return request.body !== null;
}
