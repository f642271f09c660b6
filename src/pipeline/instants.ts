// pending -> completed in one commit, many tasks at once: of engines inside this process
import { logger } from "../base/log.ts";
import type { InstantClaim } from "../run/instant.ts";
import type { Database } from "../store/database.ts";
import type { NewExecution } from "../store/execution.ts";
import { listInstructions } from "../store/instant_run.ts";
import type { WaitingTask } from "../store/task_queue.ts";
import type { Chosen } from "./heads.ts";

const log = logger("dispatcher");

/** The largest instruction that is run so: a large one would make its commit a long turn for everybody (reliability BYT-1). */
export const INSTANT_MAX_BYTES = 16 * 1024;

// Their instructions are read at once.
const INSTANT_MAX = 64;

/** What runs that are over at once need of the dispatcher. */
interface InstantsOptions {
  db: Database;
  executor: { executeInstant: (claims: readonly InstantClaim[]) => Promise<InstantClaim[]> };
  wake: () => void;
  executionOf: (task: WaitingTask, instruction: string, now: number) => NewExecution;
  /** Frees the lane. */
  release: (chosen: Chosen) => void;
  /** Claims what is not over at once. */
  claimAll: (chosen: readonly Chosen[], now: number) => Promise<unknown>;
}

/** Runs that begin and end in one commit. */
export class Instants {
  readonly #options: InstantsOptions;
  readonly batches = new Set<Promise<void>>();
  #running = 0;

  constructor(options: InstantsOptions) {
    this.#options = options;
  }

  /** How many there are now. */
  get running(): number {
    return this.#running;
  }

  /** Runs these tasks; what cannot be stored so is claimed. */
  start(chosen: readonly Chosen[], now: number): void {
    for (let at = 0; at < chosen.length; at += INSTANT_MAX) {
      this.#start(chosen.slice(at, at + INSTANT_MAX), now);
    }
  }

  #start(chosen: readonly Chosen[], now: number): void {
    const ended = this.#run(chosen, now).finally(() => {
      this.batches.delete(ended);
      this.#running -= chosen.length;
    }).then(() => this.#options.wake(), (error) => {
      // The rows are as they were, and the next round finds them again.
      log.error("Cannot claim tasks: {error}", { error });
    });
    this.#running += chosen.length;
    this.batches.add(ended);
  }

  async #run(chosen: readonly Chosen[], now: number): Promise<void> {
    const { db, executor, executionOf, release, claimAll } = this.#options;
    let left = chosen;
    try {
      const instructions = await listInstructions(db, chosen.map(({ task }) => task.id));
      const claims = new Map(chosen.map((one): [InstantClaim, Chosen] => {
        const { task, reservation: { targets } } = one;
        const execution = executionOf(task, instructions.get(task.id) ?? "", now);
        return [{ execution, task, workDir: task.work_dir, targets }, one];
      }));
      const unstored = await executor.executeInstant([...claims.keys()]);
      left = unstored.flatMap((claim) => claims.get(claim) ?? []);
    } catch (error) {
      log.warning("Cannot run tasks in one commit, and claims them one by one: {error}", { error });
    }
    for (const one of chosen) if (!left.includes(one)) release(one);
    await claimAll(left, now);
  }
}
