import { ServiceError } from "../../domain/call/error.ts";

/** Limit for the sum of all bodies of callers without a valid token, over all connections. */
export const UNKNOWN_BODIES_MAX_BYTES = 16 * 1024 * 1024;

/**
 * Limits the memory that all bodies of callers without a valid token use. At the limit, the budget refuses the largest body that is still
 * arriving, so that large bodies cannot prevent a login.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #bodies = new Set<CountedBody>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes of all open bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens an empty body. The caller must close it at the end of its request. */
  open(): CountedBody {
    const body = new CountedBody({
      take: (bytes) => this.#take(body, bytes),
      close: () => {
        if (this.#bodies.delete(body)) this.#bytes -= body.bytes;
      },
    });
    this.#bodies.add(body);
    return body;
  }

  #take(body: CountedBody, bytes: number): void {
    // A piece can arrive just before the refusal. Its bytes would stay counted.
    if (!this.#bodies.has(body)) throw body.refuse();
    while (this.#bytes + bytes > this.#maxBytes) {
      const largest = this.#findLargestArriving();
      if (largest === null || largest.bytes <= body.bytes + bytes) throw body.refuse();
      largest.refuse();
    }
    this.#bytes += bytes;
  }

  #findLargestArriving(): CountedBody | null {
    let found: CountedBody | null = null;
    for (const body of this.#bodies) {
      if (!body.complete && (found === null || body.bytes > found.bytes)) found = body;
    }
    return found;
  }
}

interface Counter {
  take: (bytes: number) => void;
  close: () => void;
}

/** A body whose bytes a BodyBudget counts. */
export class CountedBody {
  bytes = 0;
  /** Whether the whole body has arrived. The budget refuses only incomplete bodies. */
  complete = false;
  /** Stops reading this body when the budget refuses it in favor of a smaller one. */
  onRefused: (error: ServiceError) => void = () => {};
  readonly #counter: Counter;

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  /** Counts more bytes. Throws `unavailable` when the budget is used up and this body is the largest. */
  take(bytes: number): void {
    this.#counter.take(bytes);
    this.bytes += bytes;
  }

  /** Refuses this body and returns the error. */
  refuse(): ServiceError {
    const error = new ServiceError(
      "unavailable",
      "Cannot accept the request body: the service receives too many bodies of clients without a token. Try again.",
      { retry_after_s: 1 },
    );
    this.close();
    this.onRefused(error);
    return error;
  }

  close(): void {
    this.#counter.close();
  }
}
