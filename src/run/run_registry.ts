import type { Clock } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import type { Interruption } from "../domain/work/interruption.ts";
import type { RunIdentity, RunKeys } from "../domain/call/run_identity.ts";
import { isOutOfReach } from "../store/db/database.ts";
import type { OutcomeWriter } from "./outcome_writer.ts";

const log = logger("run");

/** One claimed run: what to do, and where its outcome goes. */
export interface Run<Outcome> {
  /** From the claim. */
  identity: RunIdentity;
  /** After this time it is interrupted as "late"; without it only the engine's own limits hold. */
  timeoutMs?: number;
  /** Does the work. The signal aborts when the run has to end, with an Interruption as its reason. */
  work: (signal: AbortSignal) => Promise<Outcome>;
  /** The outcome when `work` throws: the service itself could not do its part. */
  broken: Outcome;
  /** The same when it threw because the database was out of reach: the run is lost with it, and tried again. Without it that is `broken`, too. */
  lost?: Outcome;
  /** Stores the outcome. It is called again after an error, as OutcomeWriter promises. */
  store: (outcome: Outcome, interruption: Interruption | null) => Promise<void>;
}

interface Active {
  identity: RunIdentity;
  abort: AbortController;
  ended: Promise<void>;
}

/**
 * Runs claimed work, whoever claimed it and wherever the outcome goes: it keeps the list of runs in progress, ends them
 * after their time-out or on request, and has each outcome stored.
 */
export class RunRegistry {
  readonly #clock: Clock;
  readonly #writer: OutcomeWriter;
  readonly #active = new Map<string, Active>();

  constructor(clock: Clock, writer: OutcomeWriter) {
    this.#clock = clock;
    this.#writer = writer;
  }

  /** The runs in progress. */
  get running(): RunIdentity[] {
    return [...this.#active.values()].map(({ identity }) => identity);
  }

  /** Whether a run with these keys is in progress. */
  has(keys: Partial<RunKeys>): boolean {
    return this.#matching(keys).length > 0;
  }

  /** Ends the runs with these keys; resolves when their processes are gone and their outcomes are stored. */
  interrupt(keys: Partial<RunKeys>, reason: Interruption): Promise<void> {
    return end(this.#matching(keys), reason);
  }

  /** Ends every run; those that were interrupted are claimed again after the next start (reliability SHD-2). */
  stopAll(): Promise<void> {
    this.#writer.hurry();
    return end([...this.#active.values()], "shutdown");
  }

  /** Runs it to its end. Resolves when its outcome is stored; never throws. */
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

  #matching(keys: Partial<RunKeys>): Active[] {
    const wanted = Object.entries(keys) as [keyof RunKeys, string][];
    return [...this.#active.values()].filter(({ identity }) =>
      wanted.every(([name, value]) => identity[name] === value)
    );
  }
}

async function end(runs: Active[], reason: Interruption): Promise<void> {
  for (const { abort } of runs) abort.abort(reason);
  await Promise.all(runs.map(({ ended }) => ended));
}
