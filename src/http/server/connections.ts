import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { createLogger } from "../../base/log.ts";
import { getConnectionsMax, readOpenFilesMax } from "../../base/open_files.ts";
import type { Caller } from "../../domain/call/scope.ts";
import { stripIpv4Prefix } from "../authenticate.ts";
import {
  chooseForClosing,
  chooseStreamForClosing,
  createOpenConnection,
  nameUser,
  NO_TOKEN,
  type OpenConnection,
} from "./eviction.ts";
import { exchange, NO_REFERRER } from "./exchange.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { toProblem } from "../problem.ts";
import { type PortConnection, readPeerAddress, TcpStream } from "./tcp_stream.ts";

const log = createLogger("http");

/** Limits of the number of open connections. */
export interface ConnectionLimits {
  /** Most connections of all clients (server.max_connections). */
  total: number;
  /** Limit of connections from one address (server.max_connections_per_address). */
  perAddress: number;
  /** Addresses of proxies, which may have more connections than `perAddress`. */
  proxies: readonly string[];
}

export interface RequestHandler {
  /** `handle` calls `onCaller` after authentication. */
  handle: (request: Request, address: string, onCaller: (caller: Caller) => void) => Promise<Response>;
  /** Called with an error that no response reports to the client. */
  onError: (error: unknown) => void;
  /** Builds the response for a request beyond the limits. */
  onFull: () => Response;
  /** Answers a CONNECT, and resolves when its connection has ended. Absent: CONNECT is not supported. */
  onTunnel?: (target: string, client: TcpStream, head: Uint8Array) => Promise<void>;
}

type PortListener = Deno.TcpListener | Deno.UnixListener;

// Pause after a failed accept, mostly for lack of file descriptors. New clients wait in the backlog.
const ACCEPT_PAUSE_MS = 100;
const WARN_EVERY_MS = 10_000;
const HEADERS_MAX_BYTES = 64 * 1024;
// The sweep closes a connection whose first request has no complete headers by then (reliability BKP-4).
const HEADERS_MAX_MS = 30_000;
// The sweep closes a used connection without a new request by then. The rest of a refused body may never end.
const IDLE_MAX_MS = 300_000;
const SWEEP_EVERY_MS = 5_000;
const MALFORMED_STATUS: Record<string, string> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};
// When a port closes, the kernel resets the clients in its backlog. So the port closes only after no client has connected for a while.
const QUIET_TURNS = 8;
const QUIET_WAIT_TURNS = 200;
// A client may have just sent a request over an idle connection. A connection that is closed with an unread request is reset.
const IDLE_GRACE_TURNS = 50;
const PORT_CLOSE_MS = 20;

const STOPPING = new ServiceError(
  "unavailable",
  "Cannot accept the request: the service is stopping. Try again.",
  { retry_after_s: 2 },
);

/**
 * Accepts and limits the connections of a port. Deno.serve() and node:http accept no more connections after the process ran out of files
 * once, and close no idle connection for a new one. `Connections` continues after a pause. Over a limit it closes the connection that was
 * idle for longest, else one in use without a token, else one of the user with most connections. When people with few connections use all
 * of them, it closes the new one. Streams never take all connections of an address or of the port (reliability BYT-3).
 */
export class Connections {
  readonly #listener: PortListener;
  readonly #limits: ConnectionLimits;
  #handler: RequestHandler;
  readonly #open = new Set<OpenConnection>();
  readonly #byStream = new WeakMap<object, OpenConnection>();
  readonly #byAddress = new Map<string, Set<OpenConnection>>();
  readonly #server: Server;
  readonly #stopAccepting: () => void;
  readonly #sweeper: ReturnType<typeof setInterval>;
  #warnedAt = -Infinity;
  #accepted = 0;
  #closed = false;
  #isClosing = false;
  /** Resolves when the port is closed. */
  readonly #portClosed = Promise.withResolvers<void>();

  constructor(listener: PortListener, limits: ConnectionLimits, handler: RequestHandler) {
    this.#listener = listener;
    this.#limits = { ...limits, total: Math.min(limits.total, getConnectionsMax(readOpenFilesMax())) };
    this.#handler = handler;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_EVERY_MS);
    this.#server = this.#createServer();
    this.#stopAccepting = this.#startAccepting();
  }

  /** Replaces the handler of further requests, also for open connections. */
  handOver(handler: RequestHandler): void {
    this.#handler = handler;
  }

  /** The address of a TCP port. */
  get addr(): Deno.NetAddr {
    return this.#listener.addr as Deno.NetAddr;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Closes the port and every connection. Each client gets either a whole response or a refused connection: `Connections` answers new
   * requests with 503, and responses in progress have up to `maxMs`. The 503 responses wait until the port is closed. Otherwise their
   * clients could connect again before that.
   */
  async close(maxMs: number): Promise<void> {
    clearInterval(this.#sweeper);
    this.#isClosing = true;
    await this.#waitForQuiet();
    this.#closed = true;
    this.#stopAccepting();
    // The runtime closes the port only after the pending accept has ended.
    await new Promise((resolve) => setTimeout(resolve, PORT_CLOSE_MS));
    this.#portClosed.resolve();
    await waitAtMost(maxMs, () => [...this.#open].every(({ requests }) => requests === 0));
    await waitForTurns(IDLE_GRACE_TURNS, () => this.#open.size === 0);
    for (const connection of [...this.#open]) this.#end(connection);
  }

  /** Stops accepting and cuts every connection. */
  cut(): void {
    clearInterval(this.#sweeper);
    this.#isClosing = true;
    this.#closed = true;
    this.#stopAccepting();
    this.#portClosed.resolve();
    for (const connection of [...this.#open]) this.#end(connection);
  }

  async #waitForQuiet(): Promise<void> {
    let [accepted, turns] = [this.#accepted, 0];
    await waitForTurns(QUIET_WAIT_TURNS, () => {
      turns = accepted === this.#accepted ? turns + 1 : 0;
      accepted = this.#accepted;
      return turns > QUIET_TURNS;
    });
  }

  #createServer(): Server {
    const server = createServer({
      maxHeaderSize: HEADERS_MAX_BYTES,
      // node:http sends this limit to clients in a header. The sweep enforces the limit.
      keepAliveTimeout: IDLE_MAX_MS,
      // IncomingBody limits slow bodies. A large body that arrives steadily has no limit.
      requestTimeout: 0,
    });
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse) =>
      void this.#answer(incoming, outgoing);
    server.on("request", answer);
    server.on("checkContinue", answer);
    if (this.#handler.onTunnel !== undefined) {
      server.on("connect", (incoming, socket, head) => void this.#tunnel(incoming, socket, head));
    }
    server.on("clientError", (error, socket) => this.#refuseMalformed(error, socket));
    return server;
  }

  // The default response of node:http has no Referrer-Policy header. No response may be written into one that is in progress.
  #refuseMalformed({ code = "" }: NodeJS.ErrnoException, socket: Duplex): void {
    const requests = this.#byStream.get(socket)?.requests ?? 0;
    if (!socket.writable || requests > 0) return void socket.destroy();
    const status = MALFORMED_STATUS[code] ?? "400 Bad Request";
    socket.end(
      `HTTP/1.1 ${status}\r\n${NO_REFERRER.join(": ")}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    );
  }

  #startAccepting(): () => void {
    if (this.#server.listenerCount("connection") > 0) {
      // A node:http server that does not listen closes each connection after one response.
      Object.defineProperty(this.#server, "listening", { value: true });
      void this.#accept();
      return () => this.#listener.close();
    }
    // The node:http of Deno 2.6 takes no connections from outside and emits no event for its own.
    log.warning("Cannot limit connections: Deno {version} is too old. Use Deno 2.9 or newer.", {
      version: Deno.version.deno,
    });
    const { addr } = this.#listener;
    if (addr.transport !== "tcp") throw new Error("a Unix socket needs Deno 2.9 or newer");
    this.#listener.close();
    this.#server.listen(addr.port, addr.hostname);
    return () => this.#server.close();
  }

  async #accept(): Promise<void> {
    while (!this.#closed) {
      try {
        const tcp = await this.#listener.accept();
        this.#accepted++;
        this.#register(tcp);
      } catch (error) {
        if (this.#closed) return;
        this.#warnRarely("Cannot accept a connection: {error}. Retrying.", { error });
        this.#closeFor(this.#open);
        await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
      }
    }
  }

  #register(tcp: PortConnection): void {
    const address = readPeerAddress(tcp);
    if (!this.#admit(address)) return tcp.close();
    const stream = new TcpStream(tcp);
    const connection = createOpenConnection(stream, address);
    this.#open.add(connection);
    this.#byStream.set(stream, connection);
    const neighbors = this.#byAddress.get(address);
    if (neighbors === undefined) this.#byAddress.set(address, new Set([connection]));
    else neighbors.add(connection);
    stream.once("close", () => this.#forget(connection));
    this.#server.emit("connection", stream);
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const connection = this.#byStream.get(incoming.socket) ??
      createOpenConnection(null, incoming.socket.remoteAddress ?? "");
    await this.#countRequest(connection, outgoing);
    const handler = this.#handler;
    try {
      await exchange(incoming, outgoing, async (request) => {
        if (this.#isClosing) {
          await this.#portClosed.promise;
          return toProblem(STOPPING);
        }
        if (connection.requests > 1 && !this.#hasRoomFor(connection)) {
          return handler.onFull();
        }
        const response = await handler.handle(request, connection.address, (caller) => {
          connection.usedBy = nameUser(caller);
        });
        if (this.#isClosing) await this.#portClosed.promise;
        return response;
      }, { onStream: () => this.#startStream(connection), isLast: () => this.#isClosing });
    } catch (error) {
      handler.onError(error);
      outgoing.destroy();
    }
  }

  async #tunnel({ url = "" }: IncomingMessage, socket: Duplex, head: Uint8Array): Promise<void> {
    const connection = this.#byStream.get(socket);
    if (!connection?.stream || this.#isClosing) return void socket.destroy();
    connection.used = true;
    connection.streams = true;
    connection.since = performance.now();
    // A tunnel has its own time limits, so it counts as a request until it ends.
    connection.requests++;
    const earlier = connection.answered;
    connection.answered = new Promise(() => {});
    await earlier;
    await this.#handler.onTunnel?.(url, connection.stream, head);
  }

  /** Counts a request until its response is sent. Resolves when all earlier requests of the connection have their responses. */
  #countRequest(connection: OpenConnection, outgoing: ServerResponse): Promise<void> {
    const earlier = connection.answered;
    const { promise, resolve } = Promise.withResolvers<void>();
    connection.answered = promise;
    connection.used = true;
    if (connection.requests++ === 0) {
      connection.since = performance.now();
      connection.usedBy = NO_TOKEN;
    }
    outgoing.once("close", () => {
      connection.streams = false;
      connection.requests--;
      connection.since = performance.now();
      if (this.#closed) connection.stream?.end();
      resolve();
    });
    return earlier;
  }

  // A client may pipeline many requests. Each request counts like a connection.
  #hasRoomFor({ address }: OpenConnection): boolean {
    const { total, perAddress, proxies } = this.#limits;
    if (countRequests(this.#open) > total) return false;
    return proxies.includes(stripIpv4Prefix(address)) ||
      countRequests(this.#byAddress.get(address) ?? []) <= perAddress;
  }

  /** If streams would use the connections that are reserved for short requests, closes a stream of the user with most streams. */
  #startStream(connection: OpenConnection): void {
    const { total, perAddress, proxies } = this.#limits;
    connection.streams = true;
    const neighbors = proxies.includes(stripIpv4Prefix(connection.address))
      ? undefined
      : this.#byAddress.get(connection.address);
    const found = (neighbors && chooseStreamForClosing(neighbors, connection, perAddress)) ??
      chooseStreamForClosing(this.#open, connection, total);
    if (found !== null) this.#end(found);
  }

  /** Closes a connection if a limit is reached. Returns whether a new one from this address may stay. */
  #admit(address: string): boolean {
    const { total, perAddress, proxies } = this.#limits;
    const neighbors = this.#byAddress.get(address);
    if (
      neighbors !== undefined && neighbors.size >= perAddress && !proxies.includes(stripIpv4Prefix(address))
    ) {
      this.#warnRarely("Too many connections from {address} (server.max_connections_per_address)", {
        address,
      });
      return this.#closeFor(neighbors);
    }
    if (this.#open.size < total) return true;
    this.#warnRarely("Too many connections: {open} are open (server.max_connections)", {
      open: this.#open.size,
    });
    return this.#closeFor(this.#open);
  }

  #closeFor(among: ReadonlySet<OpenConnection>): boolean {
    const found = chooseForClosing(among);
    if (found === null) return false;
    this.#end(found);
    return true;
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of [...this.#open]) {
      if (
        connection.requests === 0 &&
        now - connection.since >= (connection.used ? IDLE_MAX_MS : HEADERS_MAX_MS)
      ) this.#end(connection);
    }
  }

  #end(connection: OpenConnection): void {
    connection.stream?.destroy();
    this.#forget(connection);
  }

  #forget(connection: OpenConnection): void {
    this.#open.delete(connection);
    const neighbors = this.#byAddress.get(connection.address);
    neighbors?.delete(connection);
    if (neighbors?.size === 0) this.#byAddress.delete(connection.address);
  }

  // An attack must not fill the log as well.
  #warnRarely(text: string, properties: Record<string, unknown>): void {
    if (performance.now() - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = performance.now();
    log.warning(text, properties);
  }
}

function countRequests(connections: Iterable<OpenConnection>): number {
  let sum = 0;
  for (const { requests } of connections) sum += Math.max(1, requests);
  return sum;
}

const CHECK_EVERY_MS = 5;

async function waitAtMost(maxMs: number, isDone: () => boolean): Promise<void> {
  const until = performance.now() + maxMs;
  while (!isDone() && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS));
  }
}

/** Waits for iterations of the event loop, not for a time: on a busy machine time can pass without an iteration. */
async function waitForTurns(count: number, isDone: () => boolean): Promise<void> {
  for (let turns = 0; turns < count && !isDone(); turns++) {
    await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS));
  }
}
