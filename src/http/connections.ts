import { logger } from "../base/log.ts";
import { connectionsMax, openFilesMax } from "../base/open_files.ts";
import type { Caller } from "../domain/scope.ts";
import { cutter, type HttpConnection, serveOne } from "./serve_connection.ts";

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
  onError: (error: unknown) => Response;
  /** Answers a request for which there is no room. */
  onFull: () => Response;
}

// Pause after a failed accept, mostly because there are no files; clients that connect meanwhile wait in the backlog.
const ACCEPT_PAUSE_MS = 100;
const WARN_EVERY_MS = 10_000;
// A connection whose first request has no complete headers by then is closed (reliability BKP-4).
const HEADERS_MAX_MS = 30_000;
// One that was used and sends no further request is closed, too: what is left of a refused body may come for ever.
const IDLE_MAX_MS = 300_000;
const SWEEP_EVERY_MS = 5_000;
// What a connection is used by, as long as nobody has shown a token: a body that is on its way, or an answer that is not read.
const NOBODY = "";
// Who a person is does not matter here: connections that people use are never closed for others.
const PERSON = "person";

interface Open {
  address: string;
  /** Requests whose answers are not sent yet. */
  requests: number;
  /** Whether a request ever came. */
  used: boolean;
  /** Since when it is idle, or in use, monotonic ms. */
  since: number;
  /** Who uses it: nobody who is known, an agent by its run, a runner, or a person. */
  usedBy: string;
  cut: () => void;
  server: HttpConnection;
}

/**
 * The open connections of a port. Deno.serve() stops accepting for ever when there are no files left, and has no limit. Here
 * accepting continues after a pause, and over a limit the connection that was idle for longest is closed; else one that is used without
 * a token, else one of the agent or runner that uses most. When people use all of them, the new one is closed (reliability BYT-3).
 */
export class Connections {
  readonly #listener: Deno.TcpListener;
  readonly #limits: ConnectionLimits;
  #handler: RequestHandler;
  readonly #open = new Set<Open>();
  readonly #byAddress = new Map<string, Set<Open>>();
  readonly #serve = serveOne();
  readonly #sweeper: ReturnType<typeof setInterval>;
  #warnedAt = -Infinity;
  #closed = false;

  constructor(listener: Deno.TcpListener, limits: ConnectionLimits, handler: RequestHandler) {
    this.#listener = listener;
    this.#limits = { ...limits, total: Math.min(limits.total, connectionsMax(openFilesMax())) };
    this.#handler = handler;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_EVERY_MS);
    void this.#accept();
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
    this.#listener.close();
    const all = [...this.#open];
    for (const one of all) if (one.requests === 0) this.#end(one);
    const ended = Promise.all(
      all.filter((one) => one.requests > 0).map(({ server }) => server.shutdown().catch(() => {})),
    );
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([ended, new Promise((resolve) => timer = setTimeout(resolve, maxMs))]);
    clearTimeout(timer);
    for (const one of [...this.#open]) this.#end(one);
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
    const { signal, cut } = cutter();
    const one: Open = {
      address,
      requests: 0,
      used: false,
      since: performance.now(),
      usedBy: NOBODY,
      cut,
      server: this.#serve(
        connection,
        signal,
        (request, info) => this.#answer(one, request, info),
        (error) => this.#handler.onError(error),
        () => {},
      ),
    };
    this.#open.add(one);
    const same = this.#byAddress.get(address);
    if (same === undefined) this.#byAddress.set(address, new Set([one]));
    else same.add(one);
    one.server.finished.catch(() => {}).finally(() => this.#forget(one));
  }

  #answer(one: Open, request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    one.used = true;
    if (one.requests++ === 0) {
      one.since = performance.now();
      one.usedBy = NOBODY;
    }
    const done = () => {
      one.requests--;
      one.since = performance.now();
    };
    info.completed.then(done, done);
    if (one.requests > 1 && !this.#hasRoomFor(one)) return Promise.resolve(this.#handler.onFull());
    return this.#handler.handle(request, one.address, (caller) => {
      const { run, runner } = caller;
      one.usedBy = run?.execution_id ?? (runner === undefined ? PERSON : `runner:${runner.id}`);
    });
  }

  // By HTTP/2 one connection has many requests at once: each counts like a connection.
  #hasRoomFor({ address }: Open): boolean {
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

  #closeOne(among: ReadonlySet<Open>): boolean {
    const found = longestIdle(among) ?? longestInUse([...among]);
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

  #end(one: Open): void {
    one.cut();
    this.#forget(one);
  }

  #forget(one: Open): void {
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
  return longestOf(connections.filter(({ usedBy }) => usedBy === NOBODY)) ??
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
