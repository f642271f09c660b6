/** Closes a connection in the middle of an answer on purpose: this is not an error of the server. */
export class DeliberateClose extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeliberateClose";
  }
}

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;
type Reader = ReadableStreamDefaultReader<Uint8Array>;

// What a client still sends after it was refused. An honest one ends, or stops.
const LINGER_MAX_BYTES = 64 * 1024 * 1024;
const LINGER_MAX_MS = 10_000;
const LINGER_IDLE_MS = 500;
const SHORT_BYTES = 64 * 1024;

const unread = new WeakMap<Request, Reader>();
// Requests whose answer ends like this already: a path such as "/*" goes through the middleware twice.
const ending = new WeakSet<Request>();

/** Notes that the rest of a body was left unread because of an error. */
export function leaveUnread(request: Request, reader: Reader): void {
  unread.set(request, reader);
}

/**
 * A refusal of a request whose body was left unread, ended in a way that ends the connection, too (reliability UPL-1): it
 * is complete when the client has stopped sending, and cut off when it does not stop. The server below would
 * swallow the rest for ever (facts, Deno 3).
 */
export function lingering(request: Request, answer: Response): Response {
  const rest = ending.has(request) ? null : restOf(request);
  if (rest === null) return answer;
  ending.add(request);
  const said = answer.body?.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const part = await said?.read();
      if (part?.value !== undefined) return controller.enqueue(part.value);
      if (await discard(rest)) controller.close();
      else controller.error(new DeliberateClose("the client sends on after it was refused"));
    },
    async cancel() {
      await rest.cancel().catch(() => {});
    },
  }, { highWaterMark: 0 });
  return new Response(body, answer);
}

// The rest of a body: partly read, or not read at all because of its token or its path. A short one
// that was not read needs no care.
function restOf(request: Request): Body | null {
  const { body, headers } = request;
  const reader = unread.get(request);
  if (body === null || reader === undefined && body.locked) return null;
  if (reader === undefined && Number(headers.get("content-length") ?? NaN) <= SHORT_BYTES) return null;
  reader?.releaseLock();
  return body as Body;
}

/** Reads on until the body ends or nothing comes any more; false when it is too much or takes too long. */
async function discard(body: Body): Promise<boolean> {
  const reader = new Discarder(body);
  const until = performance.now() + LINGER_MAX_MS;
  try {
    for (let bytes = 0; bytes < LINGER_MAX_BYTES && performance.now() < until;) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const idle = new Promise<null>((resolve) => timer = setTimeout(() => resolve(null), LINGER_IDLE_MS));
      const size = await Promise.race([reader.read().catch(() => null), idle]).finally(() =>
        clearTimeout(timer)
      );
      if (size === null) return true;
      bytes += size;
    }
    return false;
  } finally {
    // With an open reader the connection would stay open for half a minute.
    await reader.cancel().catch(() => {});
  }
}

/** Reads into one buffer again and again, so that no memory has to wait for the garbage collector. */
class Discarder {
  readonly #own: ReadableStreamBYOBReader | null;
  readonly #other: Reader | null;
  #buffer = new ArrayBuffer(64 * 1024);

  constructor(body: Body) {
    let own: ReadableStreamBYOBReader | null = null;
    try {
      own = body.getReader({ mode: "byob" });
    } catch {
      // It is not a byte stream.
    }
    this.#own = own;
    this.#other = own === null ? body.getReader() : null;
  }

  /** The size of the next piece, or null at the end. */
  async read(): Promise<number | null> {
    const part = this.#own === null
      ? await this.#other?.read()
      : await this.#own.read(new Uint8Array(this.#buffer));
    if (part === undefined || part.done || part.value === undefined) return null;
    if (this.#own !== null) this.#buffer = part.value.buffer as ArrayBuffer;
    return part.value.length;
  }

  async cancel(): Promise<void> {
    await (this.#own ?? this.#other)?.cancel();
  }
}
