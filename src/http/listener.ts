import type { Config } from "../config/schema.ts";
import { logger } from "../base/log.ts";
import { clientAddress } from "./authenticate.ts";
import { Connections } from "./connections.ts";
import { DeliberateClose } from "./lingering_close.ts";
import type { App } from "./mount.ts";
import { toProblem } from "./problem.ts";

const log = logger("http");

// Requests that are going on at a stop get this long; then the connection is cut.
const FINISH_MAX_MS = 5_000;

/** The port: accepts, counts what is going on, and closes without cutting anybody short. */
export class Listener {
  readonly #app: App;
  readonly #config: Config["server"];
  readonly #serverFile: string;
  #connections: Connections | null = null;
  #inFlight = 0;

  constructor(app: App, config: Config["server"], serverFile: string) {
    this.#app = app;
    this.#config = config;
    this.#serverFile = serverFile;
  }

  /** `http://host:port` as a client on this machine reaches it; "" before it listens. */
  get url(): string {
    if (this.#connections === null) return "";
    const { hostname, port } = this.#connections.addr;
    const host = hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "[::1]" : hostname;
    return `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
  }

  /** Binds the port. Throws Error with words for the operator when it is taken. */
  listen(): void {
    const { host, port } = this.#config;
    try {
      const listener = Deno.listen({ hostname: host, port });
      const { max_connections: total, max_connections_per_address: perAddress, trusted_proxies: proxies } =
        this
          .#config;
      this.#connections = new Connections(listener, { total, perAddress, proxies }, {
        handle: (request, address) => this.handle(request, address),
        onError: (error) => {
          if (error instanceof DeliberateClose) return new Response(null, { status: 500 });
          log.error("A request failed outside of the application: {error}", { error });
          return new Response(null, { status: 500 });
        },
      });
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
      throw new Error(`Cannot listen on ${host}:${port}: the port is taken; set server.port to another one`);
    }
  }

  /** Writes the address where `ctl` looks for it (contract 2). */
  async announce(): Promise<void> {
    const text = JSON.stringify({ url: this.url, pid: Deno.pid }) + "\n";
    await Deno.writeTextFile(this.#serverFile, text, { mode: 0o600 });
  }

  async handle(request: Request, peer: string): Promise<Response> {
    this.#inFlight++;
    try {
      const address = clientAddress(
        peer,
        request.headers.get("x-forwarded-for"),
        this.#config.trusted_proxies,
      );
      return await this.#app.fetch(request, { address });
    } catch (error) {
      // Only what is thrown and no Error comes this far: the framework hands it on.
      const requestId = crypto.randomUUID();
      const response = toProblem(error, requestId);
      response.headers.set("x-request-id", requestId);
      return response;
    } finally {
      this.#inFlight--;
    }
  }

  /**
   * Lets requests finish, then closes the port. The server's own shutdown breaks bodies that are still being read,
   * so it comes last (reliability SHD-5).
   */
  async close(): Promise<void> {
    await Deno.remove(this.#serverFile).catch(() => {});
    const until = performance.now() + FINISH_MAX_MS;
    while (this.#inFlight > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await this.#connections?.close(FINISH_MAX_MS);
  }
}
