import { Webhook } from "standardwebhooks";

/** A request as it came, whose signature the npm package has verified. */
export interface Got {
  id: string;
  // deno-lint-ignore no-explicit-any
  body: any;
  path: string;
}

/** How the next requests are answered: `lost` takes the request and drops the connection. */
export type Mode = "ok" | "lost" | number | { status: number; headers: Record<string, string> };

/** An address that takes signed webhooks, strictly: a wrong signature, type or method is a fault of the test. */
export class Receiver {
  readonly got: Got[] = [];
  readonly faults: string[] = [];
  /** One for each request to come; then `otherwise`. */
  readonly modes: Mode[] = [];
  otherwise: Mode = "ok";
  /** How long an answer takes. */
  delayMs = 0;
  readonly #secret: string;
  #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #port: number;

  readonly #now: () => number;

  /** `now` is the time that signatures are checked by: a test with its own clock gives that. */
  constructor(secret: string, now: () => number = Date.now) {
    this.#secret = secret;
    this.#now = now;
    this.#server = this.#listen(0);
    this.#port = this.#server.addr.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/in`;
  }

  /** Nobody listens there any more. */
  async goAway(): Promise<void> {
    await this.#server.shutdown();
  }

  /** It is back, at the same address. */
  comeBack(): void {
    this.#server = this.#listen(this.#port);
  }

  #listen(port: number): Deno.HttpServer<Deno.NetAddr> {
    return Deno.serve(
      { port, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  async #answer(request: Request): Promise<Response> {
    const text = await request.text();
    const headers = Object.fromEntries(request.headers);
    try {
      if (request.method !== "POST") throw new Error(`method ${request.method}`);
      if (headers["content-type"] !== "application/json") throw new Error(`type ${headers["content-type"]}`);
      const body = this.#verify(text, headers);
      this.got.push({ id: headers["webhook-id"] ?? "", body, path: new URL(request.url).pathname });
    } catch (error) {
      this.faults.push(String(error));
      return new Response("refused", { status: 400 });
    }
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    const mode = this.modes.shift() ?? this.otherwise;
    if (mode === "lost") {
      // The connection ends without an answer.
      return new Response(
        new ReadableStream({ start: (controller) => controller.error(new Error("lost")) }),
        { headers: { "content-length": "10" } },
      );
    }
    if (mode === "ok") return new Response("taken");
    const { status, headers: more } = typeof mode === "number" ? { status: mode, headers: {} } : mode;
    return new Response("", { status, headers: more });
  }

  // The package knows the machine's clock only.
  #verify(text: string, headers: Record<string, string>): unknown {
    const real = Date.now;
    Date.now = this.#now;
    try {
      return new Webhook(this.#secret).verify(text, headers);
    } finally {
      Date.now = real;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}
