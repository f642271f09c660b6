import { LRUCache } from "lru-cache";

// Results are pages of lists, so 64 are at most a few MB.
const RESULTS_MAX = 64;
const RESULT_MAX_AGE_MS = 1_000;
const RESULT_MAX_CHARACTERS = 256 * 1024;

interface CachedResult {
  result: Promise<unknown>;
  commits: number;
}

/** Caches the results of reads until the next commit, and for one second at most because another process may write, too. */
export class ResultCache {
  readonly #results = new LRUCache<string, CachedResult>({
    max: RESULTS_MAX,
    ttl: RESULT_MAX_AGE_MS,
    // Any other value makes lru-cache start a timer.
    ttlResolution: 0,
  });
  #commits = 0;

  invalidate(): void {
    this.#commits++;
  }

  /** Returns the cached result for `key`, or runs `work`. Large results are not cached. */
  async get<T>(key: string, work: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    const cached = this.#results.get(key);
    if (cached?.commits === this.#commits) return await (cached.result as Promise<T>);
    // Concurrent callers wait for the same promise.
    const fresh = { result: work(), commits: this.#commits };
    this.#results.set(key, fresh);
    let isCacheable = false;
    try {
      const result = await fresh.result;
      isCacheable = sizeOf(result) <= RESULT_MAX_CHARACTERS;
      return result;
    } finally {
      if (!isCacheable && this.#results.peek(key) === fresh) this.#results.delete(key);
    }
  }
}
