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

/** The idle processes of one or more engines. When there are more than `max`, the process that has been idle longest ends. */
export class IdleProcesses {
  readonly #max: number;
  readonly #ends = new Set<() => void>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a process. `end` ends the process, and calls delete(). */
  add(end: () => void): void {
    this.#ends.add(end);
    for (const oldest of this.#ends) {
      if (this.#ends.size <= this.#max) break;
      oldest();
    }
  }

  delete(end: () => void): void {
    this.#ends.delete(end);
  }
}
