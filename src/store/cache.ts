import { LRUCache } from "lru-cache";

// Pages of lists, so a few at most.
const RESULTS_MAX = 64;
const RESULT_MAX_AGE_MS = 1_000;
const RESULT_MAX_CHARACTERS = 256 * 1024;

interface Known {
  result: Promise<unknown>;
  commits: number;
}

/** Results of reads that hold until the next commit, and for a second at most: somebody else may write, too. */
export class ResultCache {
  readonly #known = new LRUCache<string, Known>({
    max: RESULTS_MAX,
    ttl: RESULT_MAX_AGE_MS,
    // With one it would keep a timer for the time of day.
    ttlResolution: 0,
  });
  #commits = 0;

  /** Something was committed: nothing that is known holds any more. */
  outdate(): void {
    this.#commits++;
  }

  /** The result of `work`, or what `key` had before when that still holds. Large results are not kept. */
  async get<T>(key: string, work: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    const known = this.#known.get(key);
    if (known?.commits === this.#commits) return await (known.result as Promise<T>);
    // Whoever asks while it is being worked out gets the same.
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
