import type { RunnerRow } from "../../store/workers/runner.ts";

/** A claim request of a runner that waits for a run. */
export interface ClaimRequest {
  runner: RunnerRow;
  requestId: string;
  /** Why the runner cannot set up a box, in its own words, or "". */
  boxFault: string;
  /** The pending write that assigns a run. Only the row shows whether the write has succeeded. */
  giving: Promise<unknown> | null;
  /** Whether the same request arrived again. The client may no longer read this response. */
  isRepeated: boolean;
  /** Ends the wait, so that the request reads the rows. */
  wake: () => void;
}

/** The waiting claim requests, one per runner. The runner repeats a lost request, and the service answers it from the row. */
export class ClaimRequests {
  /** Claim requests by runner id, the longest waiting first. */
  readonly #open = new Map<string, ClaimRequest>();

  /** Requests without a pending run, the longest waiting first. */
  get free(): ClaimRequest[] {
    return [...this.#open.values()].filter(({ giving }) => giving === null);
  }

  /** Adds a request. Wakes the earlier request of the same runner, and waits for its pending write. */
  async add(request: ClaimRequest): Promise<void> {
    const { id, epoch } = request.runner;
    for (let earlier = this.#open.get(id); earlier !== undefined; earlier = this.#open.get(id)) {
      // A late request of a replaced process must not end the request of its successor.
      if (earlier.runner.epoch > epoch) return request.wake();
      earlier.isRepeated = earlier.requestId === request.requestId;
      this.remove(earlier);
      earlier.wake();
      await earlier.giving?.catch(() => {});
    }
    this.#open.set(id, request);
  }

  /** Whether the request still waits for a run. A removed request was answered without one. */
  isOpen(request: ClaimRequest): boolean {
    return this.#open.get(request.runner.id) === request && request.giving === null;
  }

  /** Ends the wait of this runner's request. */
  wake(runnerId: string): void {
    this.#open.get(runnerId)?.wake();
  }

  remove(request: ClaimRequest): void {
    if (this.#open.get(request.runner.id) === request) this.#open.delete(request.runner.id);
  }

  /** Waits for `giving`, which writes a run for this request, and wakes the request. */
  async give<T>(request: ClaimRequest, giving: Promise<T>): Promise<T> {
    request.giving = giving;
    try {
      return await giving;
    } finally {
      request.giving = null;
      request.wake();
    }
  }
}
