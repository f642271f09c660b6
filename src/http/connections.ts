import { logger } from "../base/log.ts";

const log = logger("http");

/** How many connections may be open at once. */
interface ConnectionLimits {
  /** In all (server.max_connections). */
  total: number;
  /** From one address (server.max_connections_per_address). */
  perAddress: number;
  /** Addresses that speak for many people: only the total counts for them. */
  proxies: readonly string[];
}

/** What handles the requests. */
interface RequestHandler {
  handle: (request: Request, address: string) => Promise<Response>;
  onError: (error: unknown) => Response;
}

// The share of the files that connections leave to runs, logs, uploads and the database. Without any file left, Deno may end
// the process, so the limit is far from that.
const FILES_KEPT_BACK_SHARE = 0.4;
const FILES_KEPT_BACK_MIN = 100;
const CONNECTIONS_MIN = 8;
// Pause after a failed accept, mostly because there are no files; clients that connect meanwhile wait in the backlog.
const ACCEPT_PAUSE_MS = 100;
const WARN_EVERY_MS = 10_000;
// A connection whose first request has no complete headers by then is closed (reliability BKP-4).
const HEADERS_MAX_MS = 30_000;
const SWEEP_EVERY_MS = 5_000;

interface Open {
  address: string;
  /** Requests whose answers are not sent yet. */
  requests: number;
  /** Whether a request ever came. */
  used: boolean;
  /** Since when it is idle, monotonic ms. */
  idleSince: number;
  cut: () => void;
  server: HttpConnection;
}

interface HttpConnection {
  finished: Promise<void>;
  shutdown: () => Promise<void>;
}

type Serve = (
  connection: Deno.TcpConn,
  signal: AbortSignal,
  handler: (request: Request, info: Deno.ServeHandlerInfo) => Promise<Response>,
  onError: (error: unknown) => Response,
  onListen: () => void,
) => HttpConnection;

/**
 * The open connections of a port. Deno.serve() stops accepting for ever when there are no files left, and has no limit. Here
 * accepting continues after a pause, and over a limit the connection that was idle for longest is closed. When all are busy,
 * the new one is closed (reliability BYT-3).
 */
export class Connections {
  readonly #listener: Deno.TcpListener;
  readonly #limits: ConnectionLimits;
  readonly #handler: RequestHandler;
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
        this.#closeIdle(this.#open);
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
      idleSince: performance.now(),
      cut,
      server: this.#serve(
        connection,
        signal,
        (request, info) => this.#answer(one, request, info),
        this.#handler.onError,
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
    one.requests++;
    const done = () => {
      one.requests--;
      one.idleSince = performance.now();
    };
    info.completed.then(done, done);
    return this.#handler.handle(request, one.address);
  }

  /** Whether one more from this address may stay; closes an idle one where a limit is met. */
  #makeRoom(address: string): boolean {
    const { total, perAddress, proxies } = this.#limits;
    const same = this.#byAddress.get(address);
    if (same !== undefined && same.size >= perAddress && !proxies.includes(bare(address))) {
      this.#warn("Too many connections from {address} (server.max_connections_per_address)", { address });
      return this.#closeIdle(same);
    }
    if (this.#open.size < total) return true;
    this.#warn("Too many connections: {open} are open (server.max_connections)", { open: this.#open.size });
    return this.#closeIdle(this.#open);
  }

  // First a connection that never sent a request, then the one that was idle for longest.
  #closeIdle(among: Iterable<Open>): boolean {
    let found: Open | null = null;
    for (const one of among) {
      if (one.requests > 0) continue;
      if (!one.used) {
        found = one;
        break;
      }
      if (found === null || one.idleSince < found.idleSince) found = one;
    }
    if (found === null) return false;
    this.#end(found);
    return true;
  }

  #sweep(): void {
    const before = performance.now() - HEADERS_MAX_MS;
    for (const one of [...this.#open]) {
      if (!one.used && one.idleSince <= before) this.#end(one);
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

/** How many connections may be open, by the number of files that may be open. */
export function connectionsMax(files: number): number {
  const kept = Math.max(FILES_KEPT_BACK_MIN, files * FILES_KEPT_BACK_SHARE);
  return files === Infinity ? Infinity : Math.max(CONNECTIONS_MIN, Math.floor(files - kept));
}

/** How many files this process may open: the soft limit, which Deno raises to the hard one at its start. Infinity where it is unknown. */
function openFilesMax(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/limits"))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}

// HTTP on an accepted connection: Deno has it, but without a public name (tried on 2.6 and 2.9).
function serveOne(): Serve {
  const { internal } = Deno as unknown as { internal: symbol };
  const { serveHttpOnConnection } =
    (Deno as unknown as Record<symbol, { serveHttpOnConnection?: Serve }>)[internal] ?? {};
  if (serveHttpOnConnection === undefined) {
    throw new Error("Cannot listen: this Deno cannot serve a connection; use 2.6 to 2.9");
  }
  return serveHttpOnConnection;
}

/**
 * A signal that ends a connection when it is cut. Deno's own would report an error that nobody can catch when the client has just
 * closed the connection itself, and that ends the service.
 */
function cutter(): { signal: AbortSignal; cut: () => void } {
  let listener = () => {};
  const signal = {
    aborted: false,
    addEventListener: (_type: string, call: () => void) => listener = call,
  } as unknown as AbortSignal;
  return {
    signal,
    cut() {
      try {
        listener();
      } catch (error) {
        if (!(error instanceof Deno.errors.BadResource)) throw error;
      }
    },
  };
}

/** An IPv4 address without the prefix that makes it an IPv6 one. */
function bare(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
