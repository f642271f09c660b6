const STEPS_KEPT_MAX = 2;

/** The latest steps of the runs that are going on. Memory is enough: they are only shown. */
export class RecentActivity {
  readonly #runs = new Map<string, string[]>();

  /** The run does this now. */
  note(executionId: string, words: string): void {
    const before = this.#runs.get(executionId) ?? [];
    this.#runs.set(executionId, [...before, words].slice(-STEPS_KEPT_MAX));
  }

  /** What the run did last, oldest first. */
  of(executionId: string): readonly string[] {
    return this.#runs.get(executionId) ?? [];
  }

  /** The run has ended. */
  forget(executionId: string): void {
    this.#runs.delete(executionId);
  }
}
