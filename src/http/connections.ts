import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { logger } from "../base/log.ts";
import { connectionsMax, openFilesMax } from "../base/open_files.ts";
import type { Caller } from "../domain/scope.ts";
import { exchange } from "./exchange.ts";

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
  /** Reports an error that no answer could tell the client. */
  onError: (error: unknown) => void;
  /** Answers a request for which there is no room. */
  onFull: () => Response;
}

const WARN_EVERY_MS = 10_000;
// A connection whose next request has no complete headers by then is closed (reliability BKP-4).
const HEADERS_MAX_MS = 30_000;
// A connection that was used and sends no further request is closed, too.
const IDLE_MAX_MS = 300_000;
const CHECK_EVERY_MS = 5_000;
const HEADERS_MAX_BYTES = 64 * 1024;
// Clients that connect at once while this thread does something else. A client that finds no place in the kernel's queue tries again after
// a second.
const TCP_BACKLOG = 4_096;
// Uses a connection until its request has shown a token: a body that is on its way, or an answer that the client does not read.
const NO_TOKEN = "";
// Connections that people use are never closed for others, so all people count as one user.
const PERSON = "person";

interface Open {
  socket: Socket;
  address: string;
  /** Requests whose answers are not sent yet. */
  requests: number;
  /** Resolves when the answers to all requests so far are sent. */
  answered: Promise<void>;
  /** Whether a request ever came. */
  used: boolean;
  /** Since when it is idle, or in use, monotonic ms. */
  since: number;
  /** Who uses it: no known user, an agent by its run, a runner, or a person. */
  usedBy: string;
}

/**
 * The port and its open connections. node:http bounds slow headers and idle connections. At a limit this class closes the connection that
 * was idle for longest, else a connection that is used without a token, else one of the agent or runner that uses most. When people use all
 * of them, it closes the new one (reliability BYT-3).
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #open = new Map<Socket, Open>();
  readonly #byAddress = new Map<string, Set<Open>>();
  readonly #firstHandler = Promise.withResolvers<RequestHandler>();
  #handler: Promise<RequestHandler> = this.#firstHandler.promise;
  #warnedAt = -Infinity;
  #closed = false;

  private constructor(limits: ConnectionLimits) {
    this.#limits = { ...limits, total: Math.min(limits.total, connectionsMax(openFilesMax())) };
    this.#server = createServer({
      headersTimeout: HEADERS_MAX_MS,
      keepAliveTimeout: IDLE_MAX_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      maxHeaderSize: HEADERS_MAX_BYTES,
      // IncomingBody bounds a slow body: a large one that arrives steadily may take its time.
      requestTimeout: 0,
    });
    this.#server.on("connection", (socket) => this.#accept(socket));
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse) =>
      void this.#answer(incoming, outgoing);
    this.#server.on("request", answer);
    this.#server.on("checkContinue", answer);
  }

  /**
   * Binds the port. Requests wait until handOver() says who handles them. Throws an Error with a message for the operator when the port is
   * taken.
   */
  static async bind(
    { host, port }: { host: string; port: number },
    limits: ConnectionLimits,
  ): Promise<Connections> {
    const connections = new Connections(limits);
    const server = connections.#server;
    try {
      server.listen({ host, port, backlog: TCP_BACKLOG });
      await once(server, "listening");
    } catch (error) {
      if ((error as { code?: string }).code !== "EADDRINUSE") throw error;
      throw new Error(`Cannot listen on ${host}:${port}: the port is taken; set server.port to another one`);
    }
    server.on(
      "error",
      (error) => connections.#warn("A connection could not be accepted: {error}", { error }),
    );
    return connections;
  }

  /** Has all further requests handled by `handler`, also those of connections that are open. */
  handOver(handler: RequestHandler): void {
    this.#firstHandler.resolve(handler);
    this.#handler = Promise.resolve(handler);
  }

  get addr(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Stops accepting, waits up to `maxMs` for answers in progress, and closes every connection. */
  async close(maxMs: number): Promise<void> {
    this.#closed = true;
    this.#server.close();
    const all = [...this.#open.values()];
    for (const one of all) if (one.requests === 0) one.socket.destroy();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((resolve) => timer = setTimeout(resolve, maxMs));
    await Promise.race([Promise.all(all.map(({ answered }) => answered)), late]);
    clearTimeout(timer);
    for (const one of [...this.#open.values()]) this.#end(one);
  }

  #accept(socket: Socket): void {
    const address = socket.remoteAddress;
    if (address === undefined || !this.#makeRoom(address)) return void socket.destroy();
    const one = newConnection(socket, address);
    this.#open.set(socket, one);
    const same = this.#byAddress.get(address);
    if (same === undefined) this.#byAddress.set(address, new Set([one]));
    else same.add(one);
    socket.once("close", () => this.#forget(one));
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { socket } = incoming;
    // Before 2.8 Deno reports no connections: there each request stands alone.
    const one = this.#open.get(socket) ?? newConnection(socket, socket.remoteAddress ?? "");
    const before = this.#begin(one, outgoing);
    await before;
    const handler = await this.#handler;
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

  /** Counts a request until its answer is sent. Returns when the requests before it are answered: the client may send more at once. */
  #begin(one: Open, outgoing: ServerResponse): Promise<void> {
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
      if (this.#closed) one.socket.end();
      resolve();
    });
    return before;
  }

  // A client may send many requests without waiting for answers: each counts like a connection.
  #hasRoomFor({ address }: Open): boolean {
    const { total, perAddress, proxies } = this.#limits;
    if (requestsOf(this.#open.values()) > total) return false;
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
    return this.#closeOne(this.#open.values());
  }

  #closeOne(among: Iterable<Open>): boolean {
    const all = [...among];
    const found = longestIdle(all) ?? longestInUse(all);
    if (found === null) return false;
    this.#end(found);
    return true;
  }

  // The place is free at once, not when the socket has closed.
  #end(one: Open): void {
    one.socket.destroy();
    this.#forget(one);
  }

  #forget(one: Open): void {
    this.#open.delete(one.socket);
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

function newConnection(socket: Socket, address: string): Open {
  const since = performance.now();
  return { socket, address, requests: 0, answered: Promise.resolve(), used: false, since, usedBy: NO_TOKEN };
}

/** An IPv4 address without the prefix that makes it an IPv6 one. */
function bare(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

function requestsOf(connections: Iterable<Open>): number {
  let sum = 0;
  for (const { requests } of connections) sum += Math.max(1, requests);
  return sum;
}

// First one that never sent a request. They are in the order in which they came, and this is asked for each that comes.
function longestIdle(connections: Iterable<Open>): Open | null {
  let found: Open | null = null;
  for (const one of connections) {
    if (one.requests > 0) continue;
    if (!one.used) return one;
    if (found === null || one.since < found.since) found = one;
  }
  return found;
}

function longestInUse(connections: readonly Open[]): Open | null {
  return longestOf(connections.filter(({ usedBy }) => usedBy === NO_TOKEN)) ??
    longestOf(greediestAgent(connections));
}

function longestOf(connections: readonly Open[]): Open | null {
  return connections.reduce<Open | null>(
    (found, one) => found === null || one.since < found.since ? one : found,
    null,
  );
}

function greediestAgent(connections: readonly Open[]): readonly Open[] {
  // A runner repeats what was cut off.
  const agents = Map.groupBy(connections.filter(({ usedBy }) => usedBy !== PERSON), ({ usedBy }) => usedBy);
  return [...agents.values()].reduce((most, some) => some.length > most.length ? some : most, []);
}
