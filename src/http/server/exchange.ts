import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate } from "node:timers";

/** Closes a connection in the middle of an answer on purpose: this is not an error of the server. */
export class DeliberateClose extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeliberateClose";
  }
}

// A rest of this size has mostly arrived already: Node reads it, and the connection stays open.
const SHORT_REST_MAX_BYTES = 64 * 1024;
const NOT_YET = Promise.resolve(null);

/**
 * Answers a request of node:http with a function from Request to Response. Rejects with the error of the function or of the response's
 * body; in the second case the connection is cut, so that a client can tell half an answer from a whole one.
 */
export async function exchange(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: (request: Request) => Promise<Response>,
): Promise<void> {
  // A lost client is an error of its request's body; an answer that no longer has a reader needs none.
  incoming.on("error", () => {});
  outgoing.on("error", () => {});
  const request = buildRequest(incoming, outgoing);
  if (request === null) {
    return void outgoing.writeHead(400, ["connection", "close", "content-length", "0"]).end();
  }
  const response = await answer(request);
  try {
    await send(response, incoming, outgoing);
  } catch (error) {
    outgoing.destroy();
    if (!(error instanceof DeliberateClose)) throw error;
  }
}

/** Builds the Request. Returns null when host and path do not form a URL, or when the method is a forbidden one. */
function buildRequest(incoming: IncomingMessage, outgoing: ServerResponse): Request | null {
  const { method = "GET", url = "/", rawHeaders } = incoming;
  const headers: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) headers.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
  const body = method === "GET" || method === "HEAD" || !hasBody(incoming)
    ? null
    : openBody(incoming, outgoing);
  try {
    const address = url.startsWith("/") ? `http://${incoming.headers.host ?? "localhost"}${url}` : url;
    return new Request(address, { method, headers, body });
  } catch {
    return null;
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Opens the body as a stream that takes a piece from the socket only when its reader asks for one. */
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

/** Asks a client for its body if it waits for that (`Expect: 100-continue`). */
function sendContinue(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.headers.expect === undefined || outgoing.headersSent || continued.has(outgoing)) return;
  continued.add(outgoing);
  outgoing.writeContinue();
}

async function send(response: Response, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const headers = [...response.headers].flat();
  if (hasLongRest(incoming)) headers.push("connection", "close");
  const reader = response.body?.getReader();
  // An answer that waits for work or events has to learn that its client is gone.
  outgoing.once("close", () => void reader?.cancel().catch(() => {}));
  const reading = reader?.read();
  const first = await Promise.race([reading, waitForTurn()]);
  if (reader !== undefined && reading !== undefined && first === null) {
    // The client of an answer that waits gets the headers now.
    outgoing.writeHead(response.status, headers).flushHeaders();
    await sendPieces(reading, reader, outgoing);
    return void outgoing.end();
  }
  // The body of an answer that is made of one text ends together with its first piece.
  const next = reader?.read();
  const ended = first?.done !== false || (await Promise.race([next, NOT_YET]))?.done === true;
  if (ended && !response.headers.has("content-length") && mayHaveBody(response, incoming)) {
    headers.push("content-length", String(first?.value?.length ?? 0));
  }
  outgoing.writeHead(response.status, headers);
  if (first?.value !== undefined) outgoing.write(first.value);
  if (reader !== undefined && next !== undefined && !ended) await sendPieces(next, reader, outgoing);
  outgoing.end();
}

function waitForTurn(): Promise<null> {
  return new Promise((resolve) => setImmediate(() => resolve(null)));
}

async function sendPieces(
  next: Promise<ReadableStreamReadResult<Uint8Array>>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  outgoing: ServerResponse,
): Promise<void> {
  let wake = () => {};
  outgoing.on("drain", () => wake());
  outgoing.once("close", () => wake());
  for (let part = await next; !part.done; part = await reader.read()) {
    if (outgoing.write(part.value) || outgoing.destroyed) continue;
    await new Promise<void>((resolve) => wake = resolve);
  }
}

/** Whether the client is still sending more of its body than Node should read for nothing. */
function hasLongRest(incoming: IncomingMessage): boolean {
  if (incoming.complete || !hasBody(incoming)) return false;
  return !(Number(incoming.headers["content-length"] ?? NaN) <= SHORT_REST_MAX_BYTES);
}

function mayHaveBody({ status }: Response, { method }: IncomingMessage): boolean {
  return status !== 204 && status !== 304 && method !== "HEAD";
}
