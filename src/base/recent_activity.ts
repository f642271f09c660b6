const STEPS_KEPT_MAX = 2;

/** Keeps the latest steps of running executions in memory, for display only. */
export class RecentActivity {
  readonly #runs = new Map<string, string[]>();

  note(executionId: string, words: string): void {
    const before = this.#runs.get(executionId) ?? [];
    this.#runs.set(executionId, [...before, words].slice(-STEPS_KEPT_MAX));
  }

  /** Returns the latest steps, oldest first. */
  list(executionId: string): readonly string[] {
    return this.#runs.get(executionId) ?? [];
  }

  forget(executionId: string): void {
    this.#runs.delete(executionId);
  }
}
