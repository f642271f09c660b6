import { dirname } from "node:path";
import { concatBytes } from "../../base/bytes.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { maskText } from "./masked_text.ts";

const log = createLogger("engine");

export interface RunLogOptions {
  path: string;
  maxBytes: number;
  /** Whether each line starts with a timestamp. */
  stamped: boolean;
  now: () => number;
  /** Called after each write. */
  onWrite: () => void;
}

const NEWLINE = 10;
const encoder = new TextEncoder();

/**
 * The log of one run: output with timestamps and masked secrets, cut at a limit with a line that reports the cut. Output is written
 * immediately, so that readers can follow the log.
 */
export class RunLog {
  readonly #file: Deno.FsFile;
  readonly #options: RunLogOptions;
  readonly #secrets: Uint8Array[] = [];
  readonly #secretTexts: string[] = [];
  #size: number;
  #carry: Uint8Array<ArrayBufferLike> = new Uint8Array();
  #atLineStart = true;
  /** Output during writeTogether(). */
  #gathered: Uint8Array[] | null = null;
  #full = false;
  #closed = false;

  private constructor(file: Deno.FsFile, size: number, options: RunLogOptions) {
    this.#file = file;
    this.#size = size;
    this.#options = options;
  }

  /** Opens the file for appending, mode 0600, and makes its directory. Throws errors of the file system. */
  static open(options: RunLogOptions): RunLog {
    // A synchronous call takes microseconds. An asynchronous call waits for another thread and for an iteration of the event loop.
    const open = () => Deno.openSync(options.path, { append: true, create: true, mode: 0o600 });
    let file: Deno.FsFile;
    try {
      file = open();
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      Deno.mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
      file = open();
    }
    return new RunLog(file, file.statSync().size, options);
  }

  /** Masks this value, such as the run's token, in all later output (reliability SEC-3). */
  mask(secret: string): void {
    if (secret === "") return;
    this.#secrets.push(encoder.encode(secret));
    this.#secretTexts.push(secret);
    // The longest first: a secret that is the start of another one would leave the rest of it.
    this.#secrets.sort((one, other) => other.length - one.length);
    this.#secretTexts.sort((one, other) => other.length - one.length);
  }

  /** Masks the secrets in a text. Callers mask a text before cutting it, because write() cannot find a cut secret. */
  maskText(text: string): string {
    return maskText(this.#secretTexts, text);
  }

  /** Writes a line of the service. */
  line(text: string): void {
    const open = !this.#atLineStart || this.#carry.length > 0;
    this.write(encoder.encode(`${open ? "\n" : ""}${text}\n`));
  }

  /** Writes output of the run byte for byte. Drops output above the limit. */
  write(chunk: Uint8Array): void {
    if (this.#full || this.#closed) return;
    const bytes = this.#carry.length === 0 ? chunk : concatBytes([this.#carry, chunk]);
    const cut = this.#findCut(bytes);
    this.#carry = bytes.slice(cut);
    this.#emit(this.#maskAll(bytes.subarray(0, cut)));
  }

  /** Collects the output during `work` and writes it to the file once, also when `work` throws. */
  writeTogether(work: () => void): void {
    const gathered: Uint8Array[] = [];
    this.#gathered = gathered;
    try {
      work();
    } finally {
      this.#gathered = null;
      if (gathered.length > 0) this.#store(concatBytes(gathered));
    }
  }

  /** Writes the held output, syncs the file and closes it. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#emit(this.#maskAll(this.#carry));
    this.#closed = true;
    try {
      await this.#file.syncData();
    } catch (error) {
      this.#giveUp(error);
    } finally {
      this.#file.close();
      this.#options.onWrite();
    }
  }

  // A full disk ends only the log: the run keeps its answer (reliability DBF-2).
  #giveUp(error: unknown): void {
    if (!this.#full) {
      log.warning("Cannot write the log {path}: {error}", { path: this.#options.path, error });
    }
    this.#full = true;
  }

  #emit(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#full) return;
    const room = this.#options.maxBytes - this.#size;
    let stamped = this.#addStamps(bytes);
    if (stamped.length > room) {
      stamped = concatBytes([stamped.subarray(0, Math.max(0, room)), encoder.encode(this.#formatCut())]);
      this.#full = true;
    }
    this.#size += stamped.length;
    if (this.#gathered === null) this.#store(stamped);
    else this.#gathered.push(stamped);
  }

  #store(bytes: Uint8Array): void {
    try {
      for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
      faultPoint("log.append");
    } catch (error) {
      this.#giveUp(error);
    }
    this.#options.onWrite();
  }

  #formatCut(): string {
    const { maxBytes, stamped } = this.#options;
    const words = `log cut: it reached limits.max_log_bytes, ${maxBytes} bytes`;
    if (!stamped) return `\n${JSON.stringify({ type: "svc", text: words })}\n`;
    return `\n${formatTime(this.#options.now())}[${words}]\n`;
  }

  #addStamps(bytes: Uint8Array): Uint8Array {
    if (!this.#options.stamped) {
      this.#atLineStart = bytes.at(-1) === NEWLINE;
      return bytes;
    }
    const stamp = buildStamp(this.#options.now());
    const parts: Uint8Array[] = [];
    let length = 0;
    for (let at = 0; at < bytes.length;) {
      if (this.#atLineStart) {
        parts.push(stamp);
        length += stamp.length;
      }
      const end = bytes.indexOf(NEWLINE, at);
      const next = end === -1 ? bytes.length : end + 1;
      parts.push(bytes.subarray(at, next));
      length += next - at;
      this.#atLineStart = end !== -1;
      at = next;
      // The log has no space for the rest.
      if (length > this.#options.maxBytes) break;
    }
    return concatBytes(parts);
  }

  #maskAll(bytes: Uint8Array): Uint8Array {
    return this.#secrets.reduce(maskBytes, bytes);
  }

  /** Returns the end of the bytes that can be written now: no secret starts before it and ends, or may end, after it. */
  #findCut(bytes: Uint8Array): number {
    let cut = bytes.length;
    for (const secret of this.#secrets) cut = Math.min(cut, findCutSecret(bytes, secret, bytes.length));
    // An earlier cut may divide another secret, which then must wait, too.
    for (let before = bytes.length; cut < before;) {
      before = cut;
      for (const secret of this.#secrets) cut = Math.min(cut, findCutSecret(bytes, secret, cut));
    }
    return cut;
  }
}

/** Returns where a secret starts that the end at `cut` would divide, or `cut`. */
function findCutSecret(bytes: Uint8Array, secret: Uint8Array, cut: number): number {
  const first = secret[0] ?? 0;
  const from = Math.max(0, cut - secret.length + 1);
  for (let at = bytes.indexOf(first, from); at !== -1 && at < cut; at = bytes.indexOf(first, at + 1)) {
    if (isAt(bytes, at, secret)) return at;
  }
  return cut;
}

function formatTime(ms: number): string {
  return `${new Date(ms).toISOString()} `;
}

let latest: { ms: number; stamp: Uint8Array } = { ms: NaN, stamp: new Uint8Array() };

// Cached: two hundred agents write ten lines in a millisecond.
function buildStamp(ms: number): Uint8Array {
  if (ms !== latest.ms) latest = { ms, stamp: encoder.encode(formatTime(ms)) };
  return latest.stamp;
}

/** Whether the secret is at this place, or its start at the end of the bytes. */
function isAt(bytes: Uint8Array, at: number, secret: Uint8Array): boolean {
  const length = Math.min(secret.length, bytes.length - at);
  for (let i = 1; i < length; i++) if (bytes[at + i] !== secret[i]) return false;
  return true;
}

function maskBytes(bytes: Uint8Array, secret: Uint8Array): Uint8Array {
  const first = secret[0] ?? 0;
  let copy: Uint8Array | null = null;
  for (let at = bytes.indexOf(first); at !== -1; at = bytes.indexOf(first, at + 1)) {
    if (at + secret.length > bytes.length) break;
    if (!isAt(bytes, at, secret)) continue;
    copy ??= bytes.slice();
    copy.fill(42, at, at + secret.length);
    at += secret.length - 1;
  }
  return copy ?? bytes;
}
