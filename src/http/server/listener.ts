import { logger } from "../../base/log.ts";
import { clientAddress } from "../authenticate.ts";
import { addressOf, announce, type Announced } from "./server_file.ts";
import { type ConnectionLimits, Connections, type RequestHandler } from "./connections.ts";
import type { App } from "../app_types.ts";
import type { Caller } from "../../domain/call/scope.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { toProblem } from "../problem.ts";

const log = logger("http");

// Requests in progress at a stop have this long; then the connection is closed.
const FINISH_MAX_MS = 5_000;

const TOO_MANY_REQUESTS = new ServiceError(
  "unavailable",
  "Cannot take this now: too many requests are open (server.max_connections_per_address, server.max_connections); try again",
  { retry_after_s: 1 },
);

// So many clients may connect at once while this thread does something else, as far as the kernel's own limit goes: one that finds no place
// tries again after a whole second.
const TCP_BACKLOG = 4_096;

/**
 * Binds the port; clients that connect wait until a Listener accepts them. Throws an Error with a message for the operator when it is
 * taken.
 */
export function bindPort({ host, port }: { host: string; port: number }): Deno.TcpListener {
  try {
    return Deno.listen({ hostname: host, port, tcpBacklog: TCP_BACKLOG });
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    throw new Error(`Cannot listen on ${host}:${port}: the port is taken; set server.port to another one`);
  }
}

/** Where to listen, and how many connections to take. */
interface ListenerOptions extends Limited {
  port: Deno.TcpListener;
  /** What a standby has accepted on this port until now, else null. */
  taken: Connections | null;
}

interface Limited {
  trusted_proxies: readonly string[];
  max_connections: number;
  max_connections_per_address: number;
}

/** How many connections a configuration allows. */
export function limitsOf(server: Limited): ConnectionLimits {
  return {
    total: server.max_connections,
    perAddress: server.max_connections_per_address,
    proxies: server.trusted_proxies,
  };
}

/** The port: accepts, counts requests in progress, and closes after they are answered. */
export class Listener {
  readonly #app: App;
  readonly #options: ListenerOptions;
  readonly #announced: Announced;
  #connections: Connections | null = null;
  readonly #inFlight = new Set<Promise<Response>>();

  constructor(app: App, options: ListenerOptions, announced: Announced) {
    this.#app = app;
    this.#options = options;
    this.#announced = announced;
  }

  /** `http://host:port` as a client on this machine reaches it; "" before it accepts connections. */
  get url(): string {
    return this.#connections === null ? "" : this.#address;
  }

  get #address(): string {
    return addressOf(this.#options.port.addr as Deno.NetAddr);
  }

  /** Writes its address for `ctl`, and accepts connections from now on: who asks again after a 401 finds the new instance. */
  listen(): void {
    announce(this.#announced, this.#address);
    const { port, taken } = this.#options;
    const handler: RequestHandler = {
      handle: (request, address, onCaller) => this.handle(request, address, onCaller),
      onError: (error) => {
        // A body that came late was refused after its headers: its client asks again.
        if (error instanceof ServiceError) return;
        log.error("A request failed outside of the application: {error}", { error });
      },
      onFull: () => toProblem(TOO_MANY_REQUESTS, crypto.randomUUID()),
    };
    taken?.handOver(handler);
    this.#connections = taken ?? new Connections(port, limitsOf(this.#options), handler);
  }

  handle(request: Request, peer: string, onCaller: (caller: Caller) => void = () => {}): Promise<Response> {
    const answer = this.#answer(request, peer, onCaller).finally(() => this.#inFlight.delete(answer));
    this.#inFlight.add(answer);
    return answer;
  }

  async #answer(request: Request, peer: string, onCaller: (caller: Caller) => void): Promise<Response> {
    try {
      const address = clientAddress(
        peer,
        request.headers.get("x-forwarded-for"),
        this.#options.trusted_proxies,
      );
      return await this.#app.fetch(request, { address, onCaller });
    } catch (error) {
      // The framework handles every Error; only other values that are thrown come here.
      const requestId = crypto.randomUUID();
      const response = toProblem(error, requestId);
      response.headers.set("x-request-id", requestId);
      return response;
    }
  }

  /**
   * Lets requests finish that were there, then closes the port. Those that come meanwhile are not waited for, or clients that ask again
   * and again would keep it open. The server's own shutdown breaks bodies that are still being read, so it comes last (reliability SHD-5).
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
