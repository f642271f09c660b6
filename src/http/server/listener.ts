import { createLogger } from "../../base/log.ts";
import { findClientAddress } from "../authenticate.ts";
import { formatAddress, type ServerFile, writeServerFile } from "./server_file.ts";
import { type ConnectionLimits, Connections, type RequestHandler } from "./connections.ts";
import type { App } from "../app_types.ts";
import type { Caller } from "../../domain/call/scope.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { toProblem } from "../problem.ts";

const log = createLogger("http");

// After this time a stop closes connections with requests in progress.
const FINISH_MAX_MS = 5_000;

const TOO_MANY_REQUESTS = new ServiceError(
  "unavailable",
  "Cannot accept the request: too many requests are open (server.max_connections_per_address, server.max_connections). Try again.",
  { retry_after_s: 1 },
);

// Clients that may wait for accept, limited by the kernel. A client beyond the backlog retries only after a second.
const TCP_BACKLOG = 4_096;

/** Binds the port. Clients wait until a Listener accepts them. Throws an Error for the operator when the port is taken. */
export function bindPort({ host, port }: { host: string; port: number }): Deno.TcpListener {
  try {
    return Deno.listen({ hostname: host, port, tcpBacklog: TCP_BACKLOG });
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    throw new Error(`Cannot listen on ${host}:${port}: the port is in use. Set server.port to another port.`);
  }
}

interface ListenerOptions extends Limited {
  port: Deno.TcpListener;
  /** Connections that a standby accepted on this port, or null. */
  taken: Connections | null;
}

interface Limited {
  trusted_proxies: readonly string[];
  max_connections: number;
  max_connections_per_address: number;
}

export function buildConnectionLimits(server: Limited): ConnectionLimits {
  return {
    total: server.max_connections,
    perAddress: server.max_connections_per_address,
    proxies: server.trusted_proxies,
  };
}

/** Serves the application on the port. Closing waits for requests in progress. */
export class Listener {
  readonly #app: App;
  readonly #options: ListenerOptions;
  readonly #announced: ServerFile;
  #connections: Connections | null = null;
  readonly #inFlight = new Set<Promise<Response>>();

  constructor(app: App, options: ListenerOptions, announced: ServerFile) {
    this.#app = app;
    this.#options = options;
    this.#announced = announced;
  }

  /** `http://host:port` for clients on this machine, or "" before listen(). */
  get url(): string {
    return this.#connections === null ? "" : this.#address;
  }

  get #address(): string {
    return formatAddress(this.#options.port.addr as Deno.NetAddr);
  }

  /** Writes the address for `ctl`, then accepts connections. A client that retries after a 401 finds the new instance in the file. */
  listen(): void {
    writeServerFile(this.#announced, this.#address);
    const { port, taken } = this.#options;
    const handler: RequestHandler = {
      handle: (request, address, onCaller) => this.handle(request, address, onCaller),
      onError: (error) => {
        // The service refused a late body after it had sent the headers of the response. The client retries.
        if (error instanceof ServiceError) return;
        log.error("Cannot complete a request: {error}", { error });
      },
      onFull: () => toProblem(TOO_MANY_REQUESTS),
    };
    taken?.handOver(handler);
    this.#connections = taken ?? new Connections(port, buildConnectionLimits(this.#options), handler);
  }

  handle(request: Request, peer: string, onCaller: (caller: Caller) => void = () => {}): Promise<Response> {
    const answer = this.#answer(request, peer, onCaller).finally(() => this.#inFlight.delete(answer));
    this.#inFlight.add(answer);
    return answer;
  }

  async #answer(request: Request, peer: string, onCaller: (caller: Caller) => void): Promise<Response> {
    try {
      const address = findClientAddress(
        peer,
        request.headers.get("x-forwarded-for"),
        this.#options.trusted_proxies,
      );
      return await this.#app.fetch(request, { address, onCaller });
    } catch (error) {
      // Hono handles every Error. Other thrown values arrive here.
      return toProblem(error);
    }
  }

  /**
   * Waits for the requests in progress, then closes the port. New requests don't extend the wait, or busy clients would keep the port open.
   * Closing connections breaks bodies that are still being read, so it comes last (reliability SHD-5).
   */
  async close(): Promise<void> {
    await Deno.remove(this.#announced.path).catch(() => {});
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((resolve) => timer = setTimeout(resolve, FINISH_MAX_MS));
    await Promise.race([Promise.allSettled([...this.#inFlight]), late]);
    clearTimeout(timer);
    const connections = this.#connections ?? this.#options.taken;
    if (connections === null) this.#options.port.close();
    else await connections.close(FINISH_MAX_MS);
  }
}
