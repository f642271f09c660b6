import type { RunnerRow } from "../../store/workers/runner.ts";

/** A claim request of a runner that waits for a run. */
export interface Poll {
  runner: Pick<RunnerRow, "id" | "name" | "epoch">;
  requestId: string;
  /** The write that is about to give it a run; only the row says whether it did. */
  giving: Promise<unknown> | null;
  /** Whether the same request arrived again: the client may no longer read this answer. */
  isRepeated: boolean;
  /** Makes the request look at the rows. */
  wake: () => void;
}

/** The claim requests that wait, one of each runner. A request that is lost here is repeated, and answered from its row. */
export class Polls {
  /** By the id of the runner, the longest waiting first. */
  readonly #open = new Map<string, Poll>();

  /** Requests that no write is about to give a run, the longest waiting first. */
  get free(): Poll[] {
    return [...this.#open.values()].filter(({ giving }) => giving === null);
  }

  /** Adds a request. Wakes the request of the same runner that waited before, and waits for the run that it is about to get. */
  async add(poll: Poll): Promise<void> {
    const { id, epoch } = poll.runner;
    for (let older = this.#open.get(id); older !== undefined; older = this.#open.get(id)) {
      // A late request of a process that was replaced must not end that of its successor.
      if (older.runner.epoch > epoch) return poll.wake();
      older.isRepeated = older.requestId === poll.requestId;
      this.remove(older);
      older.wake();
      await older.giving?.catch(() => {});
    }
    this.#open.set(id, poll);
  }

  /** Whether the request still waits for a run; a request that was removed has answered that there is none. */
  isOpen(poll: Poll): boolean {
    return this.#open.get(poll.runner.id) === poll && poll.giving === null;
  }

  remove(poll: Poll): void {
    if (this.#open.get(poll.runner.id) === poll) this.#open.delete(poll.runner.id);
  }

  /** Gives the request a run: `giving` writes it. */
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
