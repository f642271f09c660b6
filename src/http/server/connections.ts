import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { logger } from "../../base/log.ts";
import { connectionsMax, openFilesMax } from "../../base/open_files.ts";
import type { Caller } from "../../domain/call/scope.ts";
import { chooseForClosing, createOpenConnection, NO_TOKEN, type OpenConnection, PERSON } from "./eviction.ts";
import { exchange } from "./exchange.ts";
import { TcpStream } from "./tcp_stream.ts";

const log = logger("http");

/** How many connections may be open at once. */
export interface ConnectionLimits {
  /** In all (server.max_connections). */
  total: number;
  /** From one address (server.max_connections_per_address). */
  perAddress: number;
  /** Addresses that speak for many people: only the total counts for them. */
  proxies: readonly string[];
}

/** What handles the requests. */
export interface RequestHandler {
  /** `onCaller` is called when it is known who sends the request. */
  handle: (request: Request, address: string, onCaller: (caller: Caller) => void) => Promise<Response>;
  /** Reports an error of which no answer could tell the client. */
  onError: (error: unknown) => void;
  /** Answers a request for which there is no room. */
  onFull: () => Response;
}

// Pause after a failed accept, mostly because there are no files; clients that connect meanwhile wait in the backlog.
const ACCEPT_PAUSE_MS = 100;
const WARN_EVERY_MS = 10_000;
const HEADERS_MAX_BYTES = 64 * 1024;
// A connection whose first request has no complete headers by then is closed (reliability BKP-4).
const HEADERS_MAX_MS = 30_000;
// One that was used and sends no further request is closed, too: what is left of a refused body may come for ever.
const IDLE_MAX_MS = 300_000;
const SWEEP_EVERY_MS = 5_000;
/**
 * The open connections of a port. Deno.serve() and node:http stop accepting permanently when there are no files left, and close no idle
 * connection for a new one. Here accepting continues after a pause, and over a limit the connection that was idle for longest is closed;
 * else one that is used without a token, else one of the agent or runner that uses most. When people use all of them, the new one is closed
 * (reliability BYT-3).
 */
export class Connections {
  readonly #listener: Deno.TcpListener;
  readonly #limits: ConnectionLimits;
  #handler: RequestHandler;
  readonly #open = new Set<OpenConnection>();
  readonly #byStream = new WeakMap<object, OpenConnection>();
  readonly #byAddress = new Map<string, Set<OpenConnection>>();
  readonly #server: Server;
  readonly #stopAccepting: () => void;
  readonly #sweeper: ReturnType<typeof setInterval>;
  #warnedAt = -Infinity;
  #closed = false;

  constructor(listener: Deno.TcpListener, limits: ConnectionLimits, handler: RequestHandler) {
    this.#listener = listener;
    this.#limits = { ...limits, total: Math.min(limits.total, connectionsMax(openFilesMax())) };
    this.#handler = handler;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_EVERY_MS);
    this.#server = this.#createServer();
    this.#stopAccepting = this.#startAccepting();
  }

  /** Has all further requests handled by another one, also those of connections that are open. */
  handOver(handler: RequestHandler): void {
    this.#handler = handler;
  }

  get addr(): Deno.NetAddr {
    return this.#listener.addr;
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Stops accepting, waits up to `maxMs` for answers in progress, and closes every connection. */
  async close(maxMs: number): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    this.#stopAccepting();
    const all = [...this.#open];
    for (const one of all) if (one.requests === 0) this.#end(one);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((resolve) => timer = setTimeout(resolve, maxMs));
    await Promise.race([Promise.all(all.map(({ answered }) => answered)), late]);
    clearTimeout(timer);
    for (const one of [...this.#open]) this.#end(one);
  }

  #createServer(): Server {
    const server = createServer({
      maxHeaderSize: HEADERS_MAX_BYTES,
      // Clients hear of it; the sweep keeps it.
      keepAliveTimeout: IDLE_MAX_MS,
      // IncomingBody bounds a slow body: a large one that arrives steadily may take its time.
      requestTimeout: 0,
    });
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse) =>
      void this.#answer(incoming, outgoing);
    server.on("request", answer);
    server.on("checkContinue", answer);
    return server;
  }

  #startAccepting(): () => void {
    if (this.#server.listenerCount("connection") > 0) {
      // Without a port of its own node:http would close each connection after one answer.
      Object.defineProperty(this.#server, "listening", { value: true });
      void this.#accept();
      return () => this.#listener.close();
    }
    // The node:http of Deno 2.6 takes no connections from elsewhere and does not report its own.
    log.warning("Connections are not limited: Deno {version} is too old for that; use 2.9", {
      version: Deno.version.deno,
    });
    const { hostname, port } = this.#listener.addr;
    this.#listener.close();
    this.#server.listen(port, hostname);
    return () => this.#server.close();
  }

  async #accept(): Promise<void> {
    while (!this.#closed) {
      try {
        this.#take(await this.#listener.accept());
      } catch (error) {
        if (this.#closed) return;
        this.#warn("A connection could not be accepted, going on: {error}", { error });
        this.#closeOne(this.#open);
        await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
      }
    }
  }

  #take(connection: Deno.TcpConn): void {
    const address = connection.remoteAddr.hostname;
    if (!this.#makeRoom(address)) return connection.close();
    const stream = new TcpStream(connection);
    const one = createOpenConnection(stream, address);
    this.#open.add(one);
    this.#byStream.set(stream, one);
    const same = this.#byAddress.get(address);
    if (same === undefined) this.#byAddress.set(address, new Set([one]));
    else same.add(one);
    stream.once("close", () => this.#forget(one));
    this.#server.emit("connection", stream);
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const one = this.#byStream.get(incoming.socket) ??
      createOpenConnection(null, incoming.socket.remoteAddress ?? "");
    await this.#begin(one, outgoing);
    const handler = this.#handler;
    try {
      await exchange(incoming, outgoing, (request) => {
        if (one.requests > 1 && !this.#hasRoomFor(one)) return Promise.resolve(handler.onFull());
        return handler.handle(request, one.address, ({ run, runner }) => {
          one.usedBy = run?.execution_id ?? (runner === undefined ? PERSON : `runner:${runner.id}`);
        });
      });
    } catch (error) {
      handler.onError(error);
      outgoing.destroy();
    }
  }

  /** Counts a request until its answer is sent. Resolves when those that the client sent before it on this connection are answered. */
  #begin(one: OpenConnection, outgoing: ServerResponse): Promise<void> {
    const before = one.answered;
    const { promise, resolve } = Promise.withResolvers<void>();
    one.answered = promise;
    one.used = true;
    if (one.requests++ === 0) {
      one.since = performance.now();
      one.usedBy = NO_TOKEN;
    }
    outgoing.once("close", () => {
      one.requests--;
      one.since = performance.now();
      if (this.#closed) one.stream?.end();
      resolve();
    });
    return before;
  }

  // A client may send many requests without waiting for answers: each counts like a connection.
  #hasRoomFor({ address }: OpenConnection): boolean {
    const { total, perAddress, proxies } = this.#limits;
    if (requestsOf(this.#open) > total) return false;
    return proxies.includes(bare(address)) || requestsOf(this.#byAddress.get(address) ?? []) <= perAddress;
  }

  /** Whether one more from this address may stay; closes an idle one where a limit is met. */
  #makeRoom(address: string): boolean {
    const { total, perAddress, proxies } = this.#limits;
    const same = this.#byAddress.get(address);
    if (same !== undefined && same.size >= perAddress && !proxies.includes(bare(address))) {
      this.#warn("Too many connections from {address} (server.max_connections_per_address)", { address });
      return this.#closeOne(same);
    }
    if (this.#open.size < total) return true;
    this.#warn("Too many connections: {open} are open (server.max_connections)", { open: this.#open.size });
    return this.#closeOne(this.#open);
  }

  #closeOne(among: ReadonlySet<OpenConnection>): boolean {
    const found = chooseForClosing(among);
    if (found === null) return false;
    this.#end(found);
    return true;
  }

  #sweep(): void {
    const now = performance.now();
    for (const one of [...this.#open]) {
      if (one.requests === 0 && now - one.since >= (one.used ? IDLE_MAX_MS : HEADERS_MAX_MS)) this.#end(one);
    }
  }

  #end(one: OpenConnection): void {
    one.stream?.destroy();
    this.#forget(one);
  }

  #forget(one: OpenConnection): void {
    this.#open.delete(one);
    const same = this.#byAddress.get(one.address);
    same?.delete(one);
    if (same?.size === 0) this.#byAddress.delete(one.address);
  }

  // An attack must not fill the log as well.
  #warn(text: string, properties: Record<string, unknown>): void {
    if (performance.now() - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = performance.now();
    log.warning(text, properties);
  }
}

/** An IPv4 address without the prefix that makes it an IPv6 one. */
function bare(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

function requestsOf(connections: Iterable<OpenConnection>): number {
  let sum = 0;
  for (const { requests } of connections) sum += Math.max(1, requests);
  return sum;
}
