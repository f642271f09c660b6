import {
  Agent as PlainAgent,
  type ClientRequest,
  type IncomingMessage,
  request as plainRequest,
} from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { ServiceError } from "../../domain/call/error.ts";
import { createLogger } from "../../base/log.ts";
import type { IncomingBody } from "../server/incoming_body.ts";

const log = createLogger("gateway");

/** How long an upstream may be silent, before its answer and within it. */
export const GATEWAY_SILENCE_MAX_MS = 600_000;
/** How long a connection to an upstream may take. */
const GATEWAY_CONNECT_MAX_MS = 15_000;
// A body of the client that the gateway passes on without reading it.
const GATEWAY_BODY_MAX_BYTES = 1024 * 1024 * 1024;
const IDLE_SOCKETS_MAX = 64;

const AGENTS = {
  "http:": new PlainAgent({ keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX }),
  "https:": new TlsAgent({ keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX }),
};

interface UpstreamRequest {
  upstream: URL;
  /** Path and query below the upstream's base path. */
  rest: string;
  method: string;
  headers: Record<string, string>;
  /** The whole body, a body that is passed on as it arrives, or null for none. */
  body: Uint8Array | IncomingBody | null;
  signal: AbortSignal;
}

/**
 * Sends a request and returns the answer as soon as its headers have arrived. Follows no redirect and checks the certificate. Throws
 * `bad_gateway`, `unavailable`, and the errors of the client's body.
 */
export async function sendUpstream(request: UpstreamRequest): Promise<IncomingMessage> {
  try {
    return await sendOnce(request);
  } catch (error) {
    // The upstream closed an idle connection while the request was on its way.
    if (
      error instanceof StaleConnectionError && (request.body === null || request.body instanceof Uint8Array)
    ) {
      return await sendOnce(request);
    }
    throw error;
  }
}

class StaleConnectionError extends ServiceError {}

function sendOnce(request: UpstreamRequest): Promise<IncomingMessage> {
  const { upstream, rest, method, headers, body, signal } = request;
  const isTls = upstream.protocol === "https:";
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const base = upstream.pathname.replace(/\/+$/, "");
  const outgoing = (isTls ? tlsRequest : plainRequest)({
    host: upstream.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: upstream.port === "" ? (isTls ? 443 : 80) : Number(upstream.port),
    path: `${base}${rest.startsWith("/") ? "" : "/"}${rest}`,
    method,
    headers: { ...(body === null ? omitLength(headers) : headers), host: upstream.host },
    agent: isTls ? AGENTS["https:"] : AGENTS["http:"],
  });
  const stop = () => outgoing.destroy(new Error("the run has ended"));
  const timers = watchStart(outgoing, isTls);
  const settle = () => {
    timers.clear();
    signal.removeEventListener("abort", stop);
  };
  outgoing.on("response", (message: IncomingMessage) => {
    settle();
    resolve(message);
  });
  outgoing.on("upgrade", (_message, socket) => {
    socket.destroy();
    reject(buildError(upstream, "it switched the protocol"));
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    settle();
    const isStale = outgoing.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(error.code ?? "");
    const words = error.code ?? error.message;
    reject(isStale ? new StaleConnectionError("bad_gateway", words) : buildError(upstream, words));
  });
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  else if (body === null || body instanceof Uint8Array) outgoing.end(body ?? undefined);
  else {
    pump(body, outgoing).catch((error) => {
      reject(error);
      outgoing.destroy();
    });
  }
  return promise;
}

// Without a body, the upstream would wait for these bytes, and take them from the next request of the connection.
function omitLength(
  { "content-length": _length, ...headers }: Record<string, string>,
): Record<string, string> {
  return headers;
}

function watchStart(outgoing: ClientRequest, isTls: boolean): { clear: () => void } {
  const fail = (words: string) => outgoing.destroy(new Error(words));
  const silent = setTimeout(
    () => fail(`no answer within ${GATEWAY_SILENCE_MAX_MS / 1000} s`),
    GATEWAY_SILENCE_MAX_MS,
  );
  const connecting = setTimeout(
    () => fail(`no connection within ${GATEWAY_CONNECT_MAX_MS / 1000} s`),
    GATEWAY_CONNECT_MAX_MS,
  );
  outgoing.on("socket", (socket) => {
    if (outgoing.reusedSocket) return clearTimeout(connecting);
    socket.once(isTls ? "secureConnect" : "connect", () => clearTimeout(connecting));
  });
  return {
    clear() {
      clearTimeout(silent);
      clearTimeout(connecting);
    },
  };
}

/** Passes the client's body on, as fast as the upstream takes it. */
async function pump(body: IncomingBody, outgoing: ClientRequest): Promise<void> {
  let bytes = 0;
  let wake = () => {};
  outgoing.on("drain", () => wake());
  outgoing.once("close", () => wake());
  for (let piece = await body.read(); piece !== null; piece = await body.read()) {
    if (outgoing.destroyed) return;
    bytes += piece.length;
    if (bytes > GATEWAY_BODY_MAX_BYTES) {
      throw new ServiceError(
        "payload_too_large",
        `Cannot pass the body on: it is larger than ${GATEWAY_BODY_MAX_BYTES} bytes`,
      );
    }
    const drained = new Promise<void>((resolve) => wake = resolve);
    if (!outgoing.write(piece) && !outgoing.destroyed) await drained;
  }
  outgoing.end();
}

function buildError(upstream: URL, words: string): ServiceError {
  log.warning("The upstream {host} of a gateway failed: {words}", { host: upstream.host, words });
  return new ServiceError("bad_gateway", `Cannot get an answer from ${upstream.host}: ${words}`);
}
