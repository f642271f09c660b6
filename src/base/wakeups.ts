import type { Clock } from "./clock.ts";

/** Names of wakeups: one per stage, and one for readers of the journal. */
export const WAKEUP = {
  intake: "intake",
  bee: "bee",
  scheduler: "scheduler",
  dispatcher: "dispatcher",
  launches: "launches",
  gate: "gate",
  outbox: "outbox",
  attachments: "attachments",
  progress: "progress",
  question: "question",
  push: "push",
  device: "device",
  trees: "trees",
  rescuer: "rescuer",
  retention: "retention",
  backup: "backup",
  budget: "budget",
  health: "health",
  journal: "journal",
} as const;

/** Returns the wakeup name for the events of one conversation. */
export function getConversationWakeup(sessionKey: string): string {
  return `conversation:${sessionKey}`;
}

/** Returns the wakeup name for words to a run in progress. */
export function getSteerWakeup(executionId: string): string {
  return `steer:${executionId}`;
}

/**
 * Wakeups by name. They only save time: listeners also poll, so a lost wakeup delays work by up to a second and loses
 * nothing.
 */
export class Wakeups {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Wakes every listener of `key`. Never throws. */
  notify(key: string): void {
    const listeners = this.#listeners.get(key);
    if (listeners === undefined) return;
    for (const listener of listeners) listener.wake();
  }

  /** Starts listening. A wakeup between two waits is kept, so listen first and read the rows afterwards. */
  listen(key: string): Listener {
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners);
    const listener = new Listener(() => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(key);
    });
    listeners.add(listener);
    return listener;
  }

  /** Number of listeners over all keys. Tests use it to find leaks. */
  get size(): number {
    let count = 0;
    for (const listeners of this.#listeners.values()) count += listeners.size;
    return count;
  }
}

/** A listener of one wakeup. Close it after use. */
export class Listener {
  #isWoken = false;
  #resolve: (() => void) | null = null;
  #close: () => void;

  constructor(close: () => void) {
    this.#close = close;
  }

  wake(): void {
    this.#isWoken = true;
    this.#resolve?.();
  }

  /** Resolves at the next wakeup (immediately if one came since the last wait), after `ms`, or when `signal` aborts. */
  async next(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
    if (!this.#isWoken && ms > 0 && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const finish = () => {
          cancel();
          signal?.removeEventListener("abort", finish);
          this.#resolve = null;
          resolve();
        };
        const cancel = clock.after(ms, finish);
        signal?.addEventListener("abort", finish);
        this.#resolve = finish;
      });
    }
    this.#isWoken = false;
  }

  /** Drops a pending wakeup. Rows that are read after this call contain its changes. */
  forget(): void {
    this.#isWoken = false;
  }

  /** Stops listening. A second close does nothing, because it must not remove later listeners. */
  close(): void {
    this.#close();
    this.#close = () => {};
    this.wake();
  }
}
