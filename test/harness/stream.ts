import { createParser } from "eventsource-parser";

/** An event of a stream, read by a strict parser. */
interface StreamEvent {
  id: string | undefined;
  event: string;
  // deno-lint-ignore no-explicit-any
  data: any;
}

/** A client of an event stream that a test reads event by event and drops at any time. */
export class StreamClient {
  readonly events: StreamEvent[] = [];
  readonly comments: string[] = [];
  readonly headers: Headers;
  readonly status: number;
  ended = false;
  readonly #abort: AbortController;
  readonly #reading: Promise<void>;
  #wake: () => void = () => {};

  private constructor(response: Response, abort: AbortController) {
    this.headers = response.headers;
    this.status = response.status;
    this.#abort = abort;
    this.#reading = this.#read(response);
  }

  /** Opens `url`; resolves after the headers. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<StreamClient> {
    const abort = new AbortController();
    const response = await fetch(url, { headers, signal: abort.signal });
    return new StreamClient(response, abort);
  }

  async #read(response: Response): Promise<void> {
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        this.events.push({ id, event: event ?? "message", data: JSON.parse(data) });
        this.#wake();
      },
      onComment: (comment) => this.comments.push(comment),
    });
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
    } catch {
      // The test has dropped the connection.
    }
    this.ended = true;
    this.#wake();
  }

  named(name: string): StreamEvent[] {
    return this.events.filter((event) => event.event === name);
  }

  /** Resolves when `done` is true for the events so far. */
  async until(done: (client: StreamClient) => boolean, timeoutMs = 10_000): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (!done(this)) {
      const left = end - performance.now();
      if (left <= 0) {
        throw new Error(`The stream did not get there: ${JSON.stringify(this.events.slice(-5))}`);
      }
      if (this.ended) throw new Error(`The stream ended before: ${JSON.stringify(this.events.slice(-5))}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, Math.min(left, 200));
      });
    }
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#reading;
  }
}
