// The way out of a box: a proxy that reaches the hosts of a worker and nothing else (contract-3 21).
import { type IncomingMessage, request as sendPlain } from "node:http";
import { Readable } from "node:stream";
import { findCheckedAddresses, RefusedAddressError, type ResolveName } from "../../base/address.ts";
import { isHostListed, OUTSIDE_PORTS, parseHostName } from "../../domain/workers/network.ts";
import type { TcpStream } from "./tcp_stream.ts";
import { copyTunnel } from "./tunnel.ts";

// The time for a name, and for each of its addresses.
const REACH_MAX_MS = 10_000;
// A host that answers a plain request later has broken its connection.
const OUTSIDE_ANSWER_MAX_MS = 300_000;
/** Hosts whose refusal a run's log names. A run may try any number. */
const REFUSALS_LOGGED_MAX = 100;
// Headers of one connection, which a proxy must not pass on.
const HOP_HEADERS = [
  ...["connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate"],
  ...["te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "expect"],
];

/** How the proxy reaches the world. Tests replace it. */
export interface Reach {
  resolve?: ResolveName;
  /** Returns where to connect for a checked address: to the address itself. */
  route: (address: string, port: number) => { hostname: string; port: number };
}

export const DIRECT: Reach = { route: (hostname, port) => ({ hostname, port }) };

/** A host that the proxy does not connect to. The message says why. */
class RefusedHostError extends Error {}

export class RunProxy {
  readonly #hosts: readonly string[];
  readonly #reach: Reach;
  readonly #onRefused: (reason: string) => void;
  readonly #refused = new Set<string>();
  readonly #closing = new AbortController();

  constructor(hosts: readonly string[], reach: Reach, onRefused: (reason: string) => void) {
    this.#hosts = hosts;
    this.#reach = reach;
    this.#onRefused = onRefused;
  }

  /** Ends every connection. */
  close(): void {
    this.#closing.abort();
  }

  /** Answers `CONNECT host:port` on a client's connection. Resolves when the connection has ended. Never throws. */
  async tunnel(target: string, client: TcpStream, head: Uint8Array): Promise<void> {
    // A client may leave before the host answers.
    client.on("error", () => {});
    let outside: Deno.Conn;
    try {
      outside = await this.#connect(target);
    } catch (error) {
      const { status, words } = describe(error);
      // Closes the connection: bytes after a refusal must not become the next request.
      client.end(
        `HTTP/1.1 ${status} ${status === 403 ? "Forbidden" : "Bad Gateway"}\r\ncontent-type: text/plain\r\n` +
          `connection: close\r\ncontent-length: ${new TextEncoder().encode(words).length}\r\n\r\n${words}`,
      );
      return;
    }
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    await copyTunnel(client, outside, head, this.#closing.signal);
  }

  /** Answers a request for a whole URL, as programs send to a proxy for `http://`. */
  async forward(request: Request): Promise<Response> {
    const url = new URL(request.url);
    try {
      if (url.protocol !== "http:") throw new RefusedHostError(`${url.protocol} needs CONNECT`);
      const port = url.port === "" ? 80 : Number(url.port);
      const [address] = await this.#check(url.hostname, port);
      return await this.#send(request, url, this.#reach.route(address, port));
    } catch (error) {
      const { status, words } = describe(error);
      return new Response(words, { status, headers: { "content-type": "text/plain" } });
    }
  }

  async #connect(target: string): Promise<Deno.Conn> {
    const [, host = "", port = ""] = /^(.*):(\d{1,5})$/.exec(target) ?? [];
    const addresses = await this.#check(host, Number(port));
    let failure: unknown;
    for (const address of addresses) {
      const late = AbortSignal.any([AbortSignal.timeout(REACH_MAX_MS), this.#closing.signal]);
      try {
        return await connect(this.#reach.route(address, Number(port)), late);
      } catch (error) {
        failure = error;
        if (this.#closing.signal.aborted) break;
      }
    }
    throw failure;
  }

  /** Returns the addresses of an allowed host. Throws RefusedHostError and reports it once. */
  async #check(host: string, port: number): Promise<[string, ...string[]]> {
    const name = parseHostName(host);
    const shown = `${name ?? JSON.stringify(host.slice(0, 100))}:${port}`;
    if (name === null || !isHostListed(this.#hosts, name)) {
      throw this.#refuse(shown, `${shown} is not in the worker's hosts`);
    }
    if (!OUTSIDE_PORTS.includes(port)) {
      throw this.#refuse(
        shown,
        `${shown} is refused: only the ports ${OUTSIDE_PORTS.join(" and ")} are open`,
      );
    }
    try {
      return await findCheckedAddresses(name, { timeoutMs: REACH_MAX_MS, resolve: this.#reach.resolve });
    } catch (error) {
      if (error instanceof RefusedAddressError) {
        throw this.#refuse(shown, `${shown} is refused: ${error.message}`);
      }
      throw error;
    }
  }

  #refuse(host: string, words: string): RefusedHostError {
    if (!this.#refused.has(host) && this.#refused.size < REFUSALS_LOGGED_MAX) {
      this.#refused.add(host);
      this.#onRefused(`network: ${words}`);
    }
    return new RefusedHostError(words);
  }

  #send(request: Request, url: URL, { hostname, port }: Deno.ConnectOptions): Promise<Response> {
    const headers = pickHeaders(request.headers);
    return new Promise((resolve, reject) => {
      const outgoing = sendPlain({
        host: hostname ?? "",
        port,
        method: request.method,
        path: url.pathname + url.search,
        headers: { ...headers, host: url.host },
        // A pooled connection might lead to an address that was not checked.
        agent: false,
      }, (answer) => resolve(buildAnswer(answer, request.method)));
      const end = () => outgoing.destroy(new Error("the run has ended"));
      this.#closing.signal.addEventListener("abort", end, { once: true });
      outgoing.setTimeout(
        OUTSIDE_ANSWER_MAX_MS,
        () => outgoing.destroy(new Error("the host does not answer")),
      );
      outgoing.on("upgrade", (_, socket) => socket.destroy());
      outgoing.on("error", reject);
      outgoing.once("close", () => this.#closing.signal.removeEventListener("abort", end));
      if (request.body === null) outgoing.end();
      else Readable.fromWeb(request.body as never).on("error", () => outgoing.destroy()).pipe(outgoing);
    });
  }
}

// Deno reports a failed connection only by the kernel's time limit, which is minutes.
async function connect(options: Deno.ConnectOptions, signal: AbortSignal): Promise<Deno.Conn> {
  const connecting = Deno.connect(options);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new Error("no connection in time"));
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([connecting, late]);
  } catch (error) {
    connecting.then((connection) => connection.close(), () => {});
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function pickHeaders(headers: Headers): Record<string, string> {
  const named = (headers.get("connection") ?? "").toLowerCase().split(",").map((name) => name.trim());
  return Object.fromEntries(
    [...headers].filter(([name]) => !HOP_HEADERS.includes(name) && !named.includes(name)),
  );
}

function buildAnswer(answer: IncomingMessage, method: string): Response {
  const status = answer.statusCode ?? 502;
  const headers = new Headers();
  for (let at = 0; at < answer.rawHeaders.length; at += 2) {
    const [name = "", value = ""] = answer.rawHeaders.slice(at, at + 2);
    if (!HOP_HEADERS.includes(name.toLowerCase())) headers.append(name, value);
  }
  const isEmpty = method === "HEAD" || status === 204 || status === 205 || status === 304;
  if (isEmpty) answer.resume();
  return new Response(isEmpty ? null : Readable.toWeb(answer) as ReadableStream<Uint8Array<ArrayBuffer>>, {
    status,
    headers,
  });
}

function describe(error: unknown): { status: 403 | 502; words: string } {
  const words = error instanceof Error ? error.message : String(error);
  return error instanceof RefusedHostError
    ? { status: 403, words: `svc: Cannot connect: ${words}.\n` }
    : { status: 502, words: `svc: Cannot reach the host: ${words}.\n` };
}
