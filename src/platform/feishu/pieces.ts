import { Buffer } from "node:buffer";
import { LRUCache } from "lru-cache";

const EVENTS_MAX = 100;
const PIECES_MAX = 1_000;
// After this time Feishu sends the whole event again.
const PIECES_LIFE_MS = 30_000;

/** Joins the pieces of long events, which arrive in any order. */
export class Pieces {
  readonly #parts = new LRUCache<string, (Uint8Array | undefined)[]>({
    max: EVENTS_MAX,
    ttl: PIECES_LIFE_MS,
  });

  /** Returns the whole event, or null while pieces are missing. */
  add(id: string, { sum, at }: { sum: number; at: number }, bytes: Uint8Array): Uint8Array | null {
    if (!(sum > 1)) return bytes;
    if (sum > PIECES_MAX || !(at >= 0 && at < sum)) throw new Error(`piece ${at} of ${sum} of an event`);
    const parts = this.#parts.get(id) ?? new Array<Uint8Array | undefined>(sum).fill(undefined);
    parts[at] = bytes;
    this.#parts.set(id, parts);
    const all = parts.filter((part) => part !== undefined);
    if (all.length < sum) return null;
    this.#parts.delete(id);
    return new Uint8Array(Buffer.concat(all));
  }
}
