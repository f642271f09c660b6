import { LRUCache } from "lru-cache";

// Pages of lists, so a few at most.
const RESULTS_MAX = 64;
const RESULT_MAX_AGE_MS = 1_000;
const RESULT_MAX_CHARACTERS = 256 * 1024;

interface Known {
  result: Promise<unknown>;
  commits: number;
}

/** Results of reads. They are valid until the next commit, and for one second at most: another process may write, too. */
export class ResultCache {
  readonly #known = new LRUCache<string, Known>({
    max: RESULTS_MAX,
    ttl: RESULT_MAX_AGE_MS,
    // Any other value makes lru-cache keep a timer.
    ttlResolution: 0,
  });
  #commits = 0;

  /** Something was committed: every result so far is out of date. */
  outdate(): void {
    this.#commits++;
  }

  /** The result of `work`, or the earlier result for `key` when it is still valid. Large results are not kept. */
  async get<T>(key: string, work: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    const known = this.#known.get(key);
    if (known?.commits === this.#commits) return await (known.result as Promise<T>);
    // Callers that come before it is ready wait for the same promise.
    const made = { result: work(), commits: this.#commits };
    this.#known.set(key, made);
    let keep = false;
    try {
      const result = await made.result;
      keep = sizeOf(result) <= RESULT_MAX_CHARACTERS;
      return result;
    } finally {
      if (!keep && this.#known.peek(key) === made) this.#known.delete(key);
    }
  }
}
