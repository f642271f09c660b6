import type { StreamDeps } from "../http_deps.ts";
import { type BodySource, buildBody } from "./body_source.ts";

const BLOCK_BYTES = 64 * 1024;
const POLL_MS = 1_000;
const NEWLINE = 10;

interface LogRequest {
  path: string;
  executionId: string;
  /** Whether the execution has ended. */
  ended: boolean;
  follow: boolean;
  tail: number | undefined;
  /** Reads `ended` again. Returns null when the caller has lost access. */
  again: () => Promise<{ ended: boolean } | null>;
}

/** Builds the name of the notification that a log has grown. */
export function buildLogWakeup(executionId: string): string {
  return `log:${executionId}`;
}

/** Builds a response that reads the log while it is sent. `follow` continues until the execution ends (contract 3, Execution). */
export async function buildLogResponse(parts: StreamDeps, request: LogRequest): Promise<Response> {
  const headers: Record<string, string> = {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    "vary": "Authorization",
    // Caches may store only a complete log (interface 4.1, reliability SEC-4).
    "cache-control": request.ended ? "public, max-age=3600" : "no-store",
  };
  const file = await Deno.open(request.path, { read: true }).catch(() => null);
  if (file === null && !(request.follow && !request.ended)) return new Response("", { headers });
  if (file !== null && request.tail !== undefined) {
    await file.seek(await findTailStart(file, request.tail), Deno.SeekMode.Start);
  }
  if (file !== null && (request.ended || !request.follow)) return new Response(file.readable, { headers });
  return new Response(buildBody(new LogReader(parts, request, file)), { headers });
}

class LogReader implements BodySource {
  readonly #parts: StreamDeps;
  readonly #request: LogRequest;
  readonly #wakeup;
  #file: Deno.FsFile | null;
  #closed = false;

  constructor(parts: StreamDeps, request: LogRequest, file: Deno.FsFile | null) {
    this.#parts = parts;
    this.#request = request;
    this.#file = file;
    this.#wakeup = parts.wakeups.listen(buildLogWakeup(request.executionId));
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const { clock, lifecycle: { stopping } } = this.#parts;
    while (!this.#closed) {
      // Check before reading, so that the last read sees everything written before the end.
      const isEnded = !this.#request.follow || this.#request.ended || stopping.aborted;
      const now = isEnded ? { ended: true } : await this.#request.again();
      if (now === null) return this.#end(controller);
      const block = await this.#read();
      if (this.#closed) return;
      if (block !== null) return controller.enqueue(block);
      if (now.ended) return this.#end(controller);
      await this.#wakeup.next(clock, POLL_MS, stopping);
    }
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    if (this.#closed) return;
    this.close();
    controller.close();
  }

  async #read(): Promise<Uint8Array | null> {
    this.#file ??= await Deno.open(this.#request.path, { read: true }).catch(() => null);
    if (this.#file === null) return null;
    const block = new Uint8Array(BLOCK_BYTES);
    const size = await this.#file.read(block);
    return size === null || size === 0 ? null : block.subarray(0, size);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wakeup.close();
    this.#file?.close();
  }
}

/** Finds the offset of the last `lines` lines. Reads the file backwards. */
async function findTailStart(file: Deno.FsFile, lines: number): Promise<number> {
  const { size } = await file.stat();
  const block = new Uint8Array(BLOCK_BYTES);
  // A line break at the end of the file terminates the last line.
  let remainingBreaks = lines + 1;
  if (lines === 0) return size;
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - BLOCK_BYTES);
    await file.seek(start, Deno.SeekMode.Start);
    const part = block.subarray(0, end - start);
    for (let at = 0; at < part.length;) at += await file.read(part.subarray(at)) ?? part.length;
    if (end === size && part.at(-1) !== NEWLINE) remainingBreaks--;
    for (let at = part.length - 1; at >= 0; at--) {
      if (part[at] === NEWLINE && --remainingBreaks === 0) return start + at + 1;
    }
    end = start;
  }
  return 0;
}
