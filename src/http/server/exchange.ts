import type { IncomingMessage, ServerResponse } from "node:http";

/** Thrown to close a connection on purpose in the middle of a response. The server logs no error for it. */
export class DeliberateClose extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeliberateClose";
  }
}

// If the unread rest of a body has at most this size, most of it has arrived already. Node reads the rest, and the connection stays open.
const SHORT_REST_MAX_BYTES = 64 * 1024;
// Large pieces come from files and are read ahead, so that the disk and the network work at the same time. Events are read only after the
// client has taken the previous ones.
const READ_AHEAD_MIN_BYTES = 32 * 1024;
// A Response made from a text needs two on Deno 2.9.6, and a copied Response needs more.
const BODY_IN_MEMORY_MICROTASKS = 10;
const NOT_YET = Promise.resolve(null);

/** Header of every response. An address may contain a token, and pages that a link leads to must not see it (contract 2.4). */
export const NO_REFERRER = ["referrer-policy", "no-referrer"] as const;

interface ExchangeHooks {
  /** Called when a response is still being produced while it is sent. */
  onStream: () => void;
  /** Returns whether the connection closes after this response. */
  isLast: () => boolean;
}

/**
 * Answers a request of node:http with a function from Request to Response. Rejects with the error of the function or of the response's
 * body. An error of the body cuts the connection, so that the client doesn't take half a response for a complete one.
 */
export async function exchange(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: (request: Request) => Promise<Response>,
  { onStream = () => {}, isLast = () => false }: Partial<ExchangeHooks> = {},
): Promise<void> {
  // The body of the request reports a lost client to its reader.
  incoming.on("error", () => {});
  outgoing.on("error", () => {});
  const request = buildRequest(incoming, outgoing);
  if (request === null) {
    return void outgoing.writeHead(400, ["connection", "close", "content-length", "0", ...NO_REFERRER]).end();
  }
  const response = await answer(request);
  try {
    await send(response, incoming, outgoing, { onStream, isLast });
  } catch (error) {
    outgoing.destroy();
    if (!(error instanceof DeliberateClose)) throw error;
  }
}

/** Returns null when host and path do not form a URL, or when the method is forbidden. */
function buildRequest(incoming: IncomingMessage, outgoing: ServerResponse): Request | null {
  const { method = "GET", url = "/", rawHeaders } = incoming;
  const headers: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) headers.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
  const body = method === "GET" || method === "HEAD" || !hasBody(incoming)
    ? null
    : openBody(incoming, outgoing);
  try {
    const address = url.startsWith("/") ? `http://${incoming.headers.host ?? "localhost"}${url}` : url;
    const request = new Request(address, { method, headers, body });
    origins.set(request, { target: url, outgoing });
    return request;
  } catch {
    return null;
  }
}

const origins = new WeakMap<Request, { target: string; outgoing: ServerResponse }>();

/** Returns the target of a request as its client wrote it. The URL of the request has dot segments resolved and backslashes replaced. */
export function getRawTarget(request: Request): string {
  return origins.get(request)?.target ?? request.url;
}

/** Returns a signal that aborts when the response has been sent or the client has disconnected. */
export function watchClient(request: Request): AbortSignal {
  const gone = new AbortController();
  origins.get(request)?.outgoing.once("close", () => gone.abort());
  return gone.signal;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Opens the body as a stream that reads from the socket only on demand. */
function openBody(incoming: IncomingMessage, outgoing: ServerResponse): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      incoming.on("data", (piece: Uint8Array) => {
        incoming.pause();
        controller.enqueue(piece);
      });
      incoming.once("end", () => controller.close());
      incoming.once("error", (error) => controller.error(error));
      incoming.pause();
    },
    pull() {
      sendContinue(incoming, outgoing);
      incoming.resume();
    },
  }, { highWaterMark: 0 });
}

const continued = new WeakSet<ServerResponse>();

/** Sends 100 to a client that waits for it (`Expect: 100-continue`). */
function sendContinue(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.headers.expect === undefined || outgoing.headersSent || continued.has(outgoing)) return;
  continued.add(outgoing);
  outgoing.writeContinue();
}

async function send(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { onStream, isLast }: ExchangeHooks,
): Promise<void> {
  const headers = [...response.headers, NO_REFERRER].flat();
  if (isLast() || hasLongRest(incoming)) headers.push("connection", "close");
  const reader = response.body?.getReader();
  // The source of a stream or a long poll ends when its client disconnects.
  outgoing.once("close", () => void reader?.cancel().catch(() => {}));
  const reading = reader?.read();
  // A client of a stream or a long poll gets the headers before the first piece exists.
  if (reading !== undefined && await Promise.race([reading, waitForMicrotasks()]) === null) {
    onStream();
    outgoing.writeHead(response.status, headers).flushHeaders();
  }
  const first = await reading;
  // A body made from one text ends together with its first piece.
  const next = reader?.read();
  const ended = first?.done !== false || (await Promise.race([next, NOT_YET]))?.done === true;
  if (!outgoing.headersSent) {
    if (ended && !response.headers.has("content-length") && mayHaveBody(response, incoming)) {
      headers.push("content-length", String(first?.value?.length ?? 0));
    }
    outgoing.writeHead(response.status, headers);
  }
  if (first?.value !== undefined) outgoing.write(first.value);
  if (reader !== undefined && next !== undefined && !ended) {
    onStream();
    await sendPieces(next, reader, outgoing);
  }
  outgoing.end();
}

async function sendPieces(
  next: Promise<ReadableStreamReadResult<Uint8Array>>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  outgoing: ServerResponse,
): Promise<void> {
  let wake = () => {};
  outgoing.on("drain", () => wake());
  outgoing.once("close", () => wake());
  for (let part = await next; !part.done; part = await next) {
    const drained = outgoing.write(part.value) || outgoing.destroyed
      ? null
      : new Promise<void>((resolve) => wake = resolve);
    if (part.value.length < READ_AHEAD_MIN_BYTES) await drained;
    next = reader.read();
    // A broken source ends the response, although its client does not read.
    next.catch(() => wake());
    await drained;
  }
}

/** Gives a body that is in memory the time to deliver its first piece. Waiting for the event loop would delay every response. */
async function waitForMicrotasks(): Promise<null> {
  for (let count = 0; count < BODY_IN_MEMORY_MICROTASKS; count++) await null;
  return null;
}

/** Whether the client still sends more of its body than Node should read and drop. */
function hasLongRest(incoming: IncomingMessage): boolean {
  if (incoming.complete || !hasBody(incoming)) return false;
  return !(Number(incoming.headers["content-length"] ?? NaN) <= SHORT_REST_MAX_BYTES);
}

function mayHaveBody({ status }: Response, { method }: IncomingMessage): boolean {
  return status !== 204 && status !== 304 && method !== "HEAD";
}
