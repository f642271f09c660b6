import { dirname } from "node:path";
import { createLogger } from "../base/log.ts";

const log = createLogger("runner");

/** Space beyond the limit for the line that marks a truncated log. */
const LOG_BEYOND_MAX_BYTES = 4_096;

/** Stores logs that arrive in parts. A repeated part changes nothing (contract 18). */
export class LogCopies {
  readonly #maxBytes: number;
  /** The last append to each log. The next one waits for it. */
  readonly #appends = new Map<string, Promise<unknown>>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes + LOG_BEYOND_MAX_BYTES;
  }

  /** Appends the new bytes of a part, up to the limit. Returns the next expected offset. */
  append(path: string, offset: number, bytes: Uint8Array): Promise<number> {
    const done = (this.#appends.get(path) ?? Promise.resolve()).catch(() => {})
      .then(() => this.#append(path, offset, bytes));
    this.#appends.set(path, done);
    const forget = () => {
      if (this.#appends.get(path) === done) this.#appends.delete(path);
    };
    done.then(forget, forget);
    return done;
  }

  /** Syncs a log to disk. Never throws: on a full disk only the log ends. */
  async sync(path: string): Promise<void> {
    await this.#appends.get(path)?.catch(() => {});
    try {
      using file = await Deno.open(path, { write: true });
      await file.syncData();
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        log.warning("The log {path} could not be synced: {error}", { path, error });
      }
    }
  }

  async #append(path: string, offset: number, bytes: Uint8Array): Promise<number> {
    const open = () => Deno.open(path, { write: true, create: true, mode: 0o600 });
    using file = await open().catch(async (error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return await open();
    });
    const { size } = await file.stat();
    const end = offset + bytes.length;
    // Drops bytes beyond the limit, like a local log.
    if (size >= this.#maxBytes) return end;
    if (offset > size) return size;
    const fresh = bytes.subarray(size - offset, Math.max(size - offset, this.#maxBytes - offset));
    // Seeks instead of appending: another server may have written the same part meanwhile.
    await file.seek(size, Deno.SeekMode.Start);
    for (let at = 0; at < fresh.length;) at += await file.write(fresh.subarray(at));
    return Math.max(size, end);
  }
}
