import type { Clock } from "./clock.ts";

/** The bells by name: one per stage, and one for readers of the journal. */
export const WAKEUP = {
  intake: "intake",
  bee: "bee",
  scheduler: "scheduler",
  dispatcher: "dispatcher",
  gate: "gate",
  outbox: "outbox",
  attachments: "attachments",
  progress: "progress",
  question: "question",
  rescuer: "rescuer",
  retention: "retention",
  backup: "backup",
  budget: "budget",
  surroundings: "surroundings",
  journal: "journal",
} as const;

/** The bell of the events of one conversation. */
export function conversationWakeup(sessionKey: string): string {
  return `conversation:${sessionKey}`;
}

/**
 * Wake-ups by name. A bell only saves time: listeners also poll, so a lost bell delays work by up to a second and loses
 * nothing.
 */
export class Wakeups {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Wakes everyone who listens to `key`. Never throws. */
  notify(key: string): void {
    const listeners = this.#listeners.get(key);
    if (listeners === undefined) return;
    for (const listener of listeners) listener.wake();
  }

  /** Starts listening. A ring between two waits is kept, so listen first and read the rows afterwards. */
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

  /** How many listeners there are, over all keys. Tests use it to find leaks. */
  get size(): number {
    let count = 0;
    for (const listeners of this.#listeners.values()) count += listeners.size;
    return count;
  }
}

/** A listener of one bell. Close it when done. */
export class Listener {
  #rung = false;
  #resolve: (() => void) | null = null;
  #close: () => void;

  constructor(close: () => void) {
    this.#close = close;
  }

  wake(): void {
    this.#rung = true;
    this.#resolve?.();
  }

  /** Resolves at the next ring (at once when one came since the last wait), after `ms`, or when `signal` aborts. */
  async next(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
    if (!this.#rung && ms > 0 && !signal?.aborted) {
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
    this.#rung = false;
  }

  /** Takes the rings up to now as heard: whoever reads the rows after this sees what they were rung for. */
  forget(): void {
    this.#rung = false;
  }

  /** Stops listening. A second close does nothing: it must not remove listeners that came later. */
  close(): void {
    this.#close();
    this.#close = () => {};
    this.wake();
  }
}
