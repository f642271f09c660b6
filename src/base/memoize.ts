import { LRUCache } from "lru-cache";

/** An LRU cache of at most `max` entries that makes no room before they come: with `max` it is made for all of them at once. */
export function roomFor(max: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: max, sizeCalculation: () => 1 };
}

/** `work` with its results for the last `max` texts kept. For what depends on the text alone. */
export function remembered<T extends object>(max: number, work: (text: string) => T): (text: string) => T {
  const known = new LRUCache<string, T>({ max });
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const made = work(text);
    known.set(text, made);
    return made;
  };
}
