import type { RunnerClaim } from "../domain/runner.ts";
import type { RunnerRow } from "../store/runner.ts";

/** A claim of a runner that waits for a run. */
export interface Poll {
  runner: Pick<RunnerRow, "id" | "name" | "epoch">;
  claim: RunnerClaim;
  /** The placement that is about to give it a run; the row decides whether it did. */
  giving: Promise<unknown> | null;
  /** Lets the claim look at the rows. */
  wake: () => void;
}

/** The claims of runners that wait. A claim that is lost here is repeated, and answered from its row. */
export class Polls {
  readonly #open = new Set<Poll>();
  /** Whether there were tasks for which no claim waited, when tasks were looked at last. */
  unplaced = true;

  /** Those that nobody is about to give a run, the longest waiting first. */
  get free(): Poll[] {
    return [...this.#open].filter(({ giving }) => giving === null);
  }

  /** A runner has one that waits: an older one is woken, and what it is about to get is waited for. Answers whether there was one. */
  async add(poll: Poll): Promise<boolean> {
    const { id } = poll.runner;
    let older = this.#of(id);
    const replaced = older !== undefined;
    for (; older !== undefined; older = this.#of(id)) {
      this.#open.delete(older);
      older.wake();
      await older.giving?.catch(() => {});
    }
    this.#open.add(poll);
    return replaced;
  }

  #of(runnerId: string): Poll | undefined {
    return [...this.#open].find(({ runner }) => runner.id === runnerId);
  }

  /** Whether it still waits for a run: one that has gone has answered that there is none. */
  isOpen(poll: Poll): boolean {
    return this.#open.has(poll) && poll.giving === null;
  }

  remove(poll: Poll): void {
    this.#open.delete(poll);
  }

  /** Gives it a run: `giving` writes the claim. */
  async give(poll: Poll, giving: Promise<unknown>): Promise<void> {
    poll.giving = giving;
    try {
      await giving;
    } finally {
      poll.giving = null;
      poll.wake();
    }
  }
}
