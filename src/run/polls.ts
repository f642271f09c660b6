import type { RunnerClaim } from "../domain/runner.ts";
import type { RunnerRow } from "../store/runner.ts";

/** A claim of a runner that waits for a run; a request may have several. */
export interface Poll {
  runner: Pick<RunnerRow, "id" | "name" | "epoch">;
  claim: Pick<RunnerClaim, "request_id">;
  /** Its place in the request; behind the first one it waits for short runs of engines inside the runner only (contract 18.6). */
  nth: number;
  /** The placement that is about to give it a run; the row decides whether it did. */
  giving: Promise<unknown> | null;
  /** Whether the same claim came once more: perhaps that one is the copy, and nobody reads its answer. */
  isRepeated: boolean;
  /** Lets the claim look at the rows. */
  wake: () => void;
}

/** How many requests of one runner wait at a time; one more ends the oldest (contract 18.6). */
const CLAIMS_WAITING_MAX = 4;

/** The claims of runners that wait. A claim that is lost here is repeated, and answered from its row. */
export class Polls {
  readonly #open = new Set<Poll>();
  readonly #ofRunner = new Map<string, Set<Poll>>();
  /** Whether there were tasks that a claim could have got, had there been one, when tasks were looked at last. */
  unplaced = true;

  /** Those that nobody is about to give a run, the longest waiting first. */
  get free(): Poll[] {
    return [...this.#open].filter(({ giving }) => giving === null);
  }

  /** Whether there is such a one. */
  get hasFree(): boolean {
    for (const { giving } of this.#open) if (giving === null) return true;
    return false;
  }

  /**
   * Lets it wait. The claim that it repeats, one of a process before, and the oldest of too many are woken, and what they are about
   * to get is waited for. Answers whether there was one.
   */
  async add(poll: Poll): Promise<boolean> {
    let replaced = false;
    for (let older = this.#endedBy(poll); older !== null; older = this.#endedBy(poll)) {
      replaced = true;
      older.isRepeated = older.claim.request_id === poll.claim.request_id;
      this.remove(older);
      older.wake();
      await older.giving?.catch(() => {});
    }
    this.#open.add(poll);
    const { id } = poll.runner;
    const same = this.#ofRunner.get(id);
    if (same === undefined) this.#ofRunner.set(id, new Set([poll]));
    else same.add(poll);
    return replaced;
  }

  #endedBy({ runner, claim, nth }: Poll): Poll | null {
    const same = [...this.#ofRunner.get(runner.id) ?? []];
    const found = same.find((one) =>
      one.claim.request_id === claim.request_id || one.runner.epoch < runner.epoch
    );
    if (found !== undefined) return found;
    const first = same.filter(({ nth }) => nth === 0);
    return nth === 0 && first.length >= CLAIMS_WAITING_MAX ? first[0] ?? null : null;
  }

  /** Whether it still waits for a run: one that has gone has answered that there is none. */
  isOpen(poll: Poll): boolean {
    return this.#open.has(poll) && poll.giving === null;
  }

  remove(poll: Poll): void {
    this.#open.delete(poll);
    const { id } = poll.runner;
    const same = this.#ofRunner.get(id);
    same?.delete(poll);
    if (same?.size === 0) this.#ofRunner.delete(id);
  }

  /** Gives it a run: `giving` writes the claim, and answers whether it did. */
  async give(poll: Poll, giving: Promise<boolean>): Promise<boolean> {
    poll.giving = giving;
    try {
      return await giving;
    } finally {
      poll.giving = null;
      poll.wake();
    }
  }
}
