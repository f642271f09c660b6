import { LRUCache } from "lru-cache";

/**
 * Options for an LRU cache of at most `max` entries. With the option `max` the cache allocates all entries when it is
 * created.
 */
export function buildCacheOptions(max: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: max, sizeCalculation: () => 1 };
}

/** Returns `work` with a cache for the last `max` texts. `work` must depend on its text alone. */
export function memoize<T extends object>(max: number, work: (text: string) => T): (text: string) => T {
  const known = new LRUCache<string, T>({ max });
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const made = work(text);
    known.set(text, made);
    return made;
  };
}
