import type { RunnerRow } from "../../store/workers/runner.ts";

/** A claim request of a runner that waits for a run. */
export interface Poll {
  runner: Pick<RunnerRow, "id" | "name" | "epoch">;
  requestId: string;
  /** The write that is about to give it a run. Only the row shows whether it did. */
  giving: Promise<unknown> | null;
  /** Whether the same request arrived again. The client may no longer read this response. */
  isRepeated: boolean;
  /** Ends the wait, so that the request reads the rows. */
  wake: () => void;
}

/** The waiting claim requests, one per runner. A lost request is repeated, and its row answers it. */
export class Polls {
  /** By runner id, the longest waiting first. */
  readonly #open = new Map<string, Poll>();

  /** Requests without a pending run, the longest waiting first. */
  get free(): Poll[] {
    return [...this.#open.values()].filter(({ giving }) => giving === null);
  }

  /** Adds a request. Wakes the earlier request of the same runner, and waits for the run that it is about to get. */
  async add(poll: Poll): Promise<void> {
    const { id, epoch } = poll.runner;
    for (let older = this.#open.get(id); older !== undefined; older = this.#open.get(id)) {
      // A late request of a replaced process must not end the request of its successor.
      if (older.runner.epoch > epoch) return poll.wake();
      older.isRepeated = older.requestId === poll.requestId;
      this.remove(older);
      older.wake();
      await older.giving?.catch(() => {});
    }
    this.#open.set(id, poll);
  }

  /** Whether the request still waits for a run. A removed request was answered without one. */
  isOpen(poll: Poll): boolean {
    return this.#open.get(poll.runner.id) === poll && poll.giving === null;
  }

  remove(poll: Poll): void {
    if (this.#open.get(poll.runner.id) === poll) this.#open.delete(poll.runner.id);
  }

  /** Gives the request the run that `giving` writes. */
  async give<T>(poll: Poll, giving: Promise<T>): Promise<T> {
    poll.giving = giving;
    try {
      return await giving;
    } finally {
      poll.giving = null;
      poll.wake();
    }
  }
}
