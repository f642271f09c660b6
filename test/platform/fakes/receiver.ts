import { Webhook } from "standardwebhooks";
import { dropConnection } from "./server.ts";

export const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;

/** Signs a webhook as the npm package does. Returns its headers. */
export function sign(body: string, id: string, at = Date.now(), secret = SECRET): Record<string, string> {
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at / 1000)),
    "webhook-signature": new Webhook(secret).sign(id, new Date(at), body),
  };
}

/** A request with a signature that the npm package verified. */
export interface Got {
  id: string;
  // deno-lint-ignore no-explicit-any
  body: any;
  path: string;
}

/** Answer to a request. `lost`: accepts the request and drops the connection. */
export type Mode = "ok" | "lost" | number | { status: number; headers: Record<string, string> };

/** A strict receiver of webhooks: a wrong signature, type or method fails the test. */
export class Receiver {
  readonly got: Got[] = [];
  readonly faults: string[] = [];
  /** Answer of each request, then `otherwise`. */
  readonly modes: Mode[] = [];
  otherwise: Mode = "ok";
  delayMs = 0;
  #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #port: number;
  readonly #secret: string;
  readonly #now: () => number;

  /** `now`: clock for signatures. */
  constructor(secret = SECRET, now: () => number = Date.now) {
    this.#secret = secret;
    this.#now = now;
    this.#server = this.#listen(0);
    this.#port = this.#server.addr.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/in`;
  }

  async goAway(): Promise<void> {
    await this.#server.shutdown();
  }

  /** Listens at the same address again. */
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
      return dropConnection();
    }
    if (mode === "ok") return new Response("taken");
    const { status, headers: more } = typeof mode === "number" ? { status: mode, headers: {} } : mode;
    return new Response("", { status, headers: more });
  }

  // The package uses only the clock of the machine.
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
