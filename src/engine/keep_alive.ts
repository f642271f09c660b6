import type { EngineConfig, WarmConfig } from "./config.ts";

/** How processes of an engine stay open (contract 19). */
export interface KeepAlive {
  warm: WarmConfig;
  idle: IdleProcesses;
}

/** Returns the engine's `warm` settings, or `shared` if it has none. Returns null if no process stays open. */
export function resolveKeepAlive({ warm }: EngineConfig, shared: KeepAlive | null): KeepAlive | null {
  if (warm === undefined) return shared;
  return warm.max === 0 ? null : { warm, idle: new IdleProcesses(warm.max) };
}

/**
 * The idle processes of one or more engines. When there are more than `max`, the oldest spare process ends, or the process that has been
 * idle longest if there is none.
 */
export class IdleProcesses {
  readonly #max: number;
  readonly #ends = new Set<() => void>();
  readonly #spares = new Set<() => void>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a process. `end` ends the process, and calls delete(). */
  add(end: () => void): void {
    this.#ends.add(end);
    this.#shrink();
  }

  /** Adds a spare process like add(). Returns false if the processes of conversations need all the places. */
  addSpare(end: () => void): boolean {
    if (this.#ends.size >= this.#max) return false;
    this.#spares.add(end);
    this.#shrink();
    return true;
  }

  delete(end: () => void): void {
    this.#ends.delete(end);
    this.#spares.delete(end);
  }

  #shrink(): void {
    for (const end of [...this.#spares, ...this.#ends]) {
      if (this.#ends.size + this.#spares.size <= this.#max) break;
      end();
    }
  }
}
