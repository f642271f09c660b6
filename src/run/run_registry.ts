import type { Clock } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import type { Interruption } from "../domain/work/interruption.ts";
import type { RunIdentity, RunKeys } from "../domain/call/run_identity.ts";
import { isOutOfReach } from "../store/db/database_error.ts";
import type { OutcomeWriter } from "./outcome_writer.ts";

const log = createLogger("run");

/** A claimed run: its work, and where its outcome goes. */
export interface Run<Outcome> {
  identity: RunIdentity;
  /** Interrupts the run as "late" after this time. Without it only the engine's limits apply. */
  timeoutMs?: number;
  /** Does the work. The signal aborts with an Interruption when the run has to end. */
  work: (signal: AbortSignal) => Promise<Outcome>;
  /** The outcome when `work` throws, because the service could not do its part. */
  broken: Outcome;
  /** The outcome when the database was unreachable: the run is lost and retried. Default: `broken`. */
  lost?: Outcome;
  /** Stores the outcome. OutcomeWriter calls it again after an error. */
  store: (outcome: Outcome, interruption: Interruption | null) => Promise<void>;
}

interface ActiveRun {
  identity: RunIdentity;
  abort: AbortController;
  ended: Promise<void>;
}

/** Lists the runs in progress, ends them after their time limit or on request, and has each outcome stored. */
export class RunRegistry {
  readonly #clock: Clock;
  readonly #writer: OutcomeWriter;
  readonly #active = new Map<string, ActiveRun>();

  constructor(clock: Clock, writer: OutcomeWriter) {
    this.#clock = clock;
    this.#writer = writer;
  }

  get running(): RunIdentity[] {
    return [...this.#active.values()].map(({ identity }) => identity);
  }

  /** Whether a run with these keys is in progress. */
  has(keys: Partial<RunKeys>): boolean {
    return this.#findRuns(keys).length > 0;
  }

  /** Ends the runs with these keys. Resolves when their processes are gone and their outcomes are stored. */
  interrupt(keys: Partial<RunKeys>, reason: Interruption): Promise<void> {
    return endRuns(this.#findRuns(keys), reason);
  }

  /** Ends every run. Interrupted runs are claimed again after the next start (reliability SHD-2). */
  stopAll(): Promise<void> {
    this.#writer.hurry();
    return endRuns([...this.#active.values()], "shutdown");
  }

  /** Runs the work to its end. Resolves when the outcome is stored. Never throws. */
  start<Outcome>(run: Run<Outcome>): Promise<void> {
    const { identity } = run;
    const abort = new AbortController();
    const ended = this.#run(run, abort).finally(() => this.#active.delete(identity.execution_id));
    this.#active.set(identity.execution_id, { identity, abort, ended });
    return ended;
  }

  async #run<Outcome>(run: Run<Outcome>, abort: AbortController): Promise<void> {
    const { identity: { execution_id: id }, timeoutMs, work, broken, lost, store } = run;
    const cancelTimer = timeoutMs === undefined
      ? () => {}
      : this.#clock.after(timeoutMs, () => abort.abort("late" satisfies Interruption));
    let outcome: Outcome;
    try {
      outcome = await work(abort.signal);
    } catch (error) {
      log.error("The run {id} broke: {error}", { id, error });
      outcome = isOutOfReach(error) ? lost ?? broken : broken;
    }
    cancelTimer();
    const interruption = abort.signal.aborted ? abort.signal.reason as Interruption : null;
    await this.#writer.store(id, () => store(outcome, interruption));
  }

  #findRuns(keys: Partial<RunKeys>): ActiveRun[] {
    const wanted = Object.entries(keys) as [keyof RunKeys, string][];
    return [...this.#active.values()].filter(({ identity }) =>
      wanted.every(([name, value]) => identity[name] === value)
    );
  }
}

async function endRuns(runs: ActiveRun[], reason: Interruption): Promise<void> {
  for (const { abort } of runs) abort.abort(reason);
  await Promise.all(runs.map(({ ended }) => ended));
}
