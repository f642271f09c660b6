import { logger } from "../base/log.ts";
import { clientAddress } from "./authenticate.ts";
import { addressOf, announce, type Announced } from "./announcement.ts";
import type { ConnectionLimits, Connections } from "./connections.ts";
import type { App } from "./framework.ts";
import type { Caller } from "../domain/scope.ts";
import { ServiceError } from "../domain/error.ts";
import { toProblem } from "./problem.ts";

const log = logger("http");

// Requests in progress at a stop have this long; then the connection is closed.
const FINISH_MAX_MS = 5_000;

const TOO_MANY_REQUESTS = new ServiceError(
  "unavailable",
  "Cannot take this now: too many requests are open (server.max_connections_per_address, server.max_connections); try again",
  { retry_after_s: 1 },
);

/** The port, and how requests are told apart by address. */
interface ListenerOptions {
  port: Connections;
  trusted_proxies: readonly string[];
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

/** The application on its port: counts requests in progress, and closes after they are answered. */
export class Listener {
  readonly #app: App;
  readonly #options: ListenerOptions;
  readonly #announced: Announced;
  #listening = false;
  readonly #inFlight = new Set<Promise<Response>>();

  constructor(app: App, options: ListenerOptions, announced: Announced) {
    this.#app = app;
    this.#options = options;
    this.#announced = announced;
  }

  /** `http://host:port` as a client on this machine reaches it; "" before it accepts connections. */
  get url(): string {
    return this.#listening ? this.#address : "";
  }

  get #address(): string {
    return addressOf(this.#options.port.addr);
  }

  /** Writes its address for `ctl`, and accepts connections from now on: who asks again after a 401 finds the new instance. */
  listen(): void {
    announce(this.#announced, this.#address);
    this.#options.port.handOver({
      handle: (request, address, onCaller) => this.handle(request, address, onCaller),
      onError: (error) => log.error("A request failed outside of the application: {error}", { error }),
      onFull: () => toProblem(TOO_MANY_REQUESTS, crypto.randomUUID()),
    });
    this.#listening = true;
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
    await this.#options.port.close(FINISH_MAX_MS);
  }
}
