import type { EngineConfig, WarmConfig } from "./config.ts";

/** How processes of an engine stay open (contract 19). */
export interface Stays {
  warm: WarmConfig;
  waiting: Waiting;
}

/** What of an engine stays open: as it is configured, else as all those that say nothing do together; null: nothing. */
export function staysOf({ warm }: EngineConfig, shared: Stays | null): Stays | null {
  if (warm === undefined) return shared;
  return warm.max === 0 ? null : { warm, waiting: new Waiting(warm.max) };
}

/** Processes that wait for their next turn, of one engine or of several: so many at most, and the one that has waited longest ends first. */
export class Waiting {
  readonly #max: number;
  readonly #ends = new Set<() => void>();

  constructor(max: number) {
    this.#max = max;
  }

  /** One more waits. `end` ends it, and calls delete(). */
  add(end: () => void): void {
    this.#ends.add(end);
    for (const oldest of this.#ends) {
      if (this.#ends.size <= this.#max) break;
      oldest();
    }
  }

  /** It does not wait any more. */
  delete(end: () => void): void {
    this.#ends.delete(end);
  }
}
