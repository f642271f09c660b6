// pending -> running, and a new execution in the same batch
import type { Clock } from "../base/clock.ts";
import type { Catalog } from "../engine/catalog.ts";
import { faultPoint } from "../base/fault_point.ts";
import { waitReason } from "../domain/rate_limit.ts";
import { newId } from "../base/id.ts";
import type { Claim } from "../run/claim.ts";
import type { Waits } from "../base/waits.ts";
import type { Database } from "../store/database.ts";
import { insertExecution, type NewExecution } from "../store/execution.ts";
import { hasUnnotedWait, noteWait } from "../store/rate_limit.ts";
import { findInstruction } from "../store/task.ts";
import { claimTask } from "../store/task_move.ts";
import { listLaneHeads, nextDueAt, type WaitingTask } from "../store/task_queue.ts";
import { BELL, type Bells } from "../base/bells.ts";
import { Stage } from "./loop.ts";

/** What the dispatcher works with. */
interface DispatcherOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  engines: Catalog;
  /** The runs that wait for a person: they hold their lane, and no slot. */
  waits: Waits;
  maxConcurrentRuns: number;
  maxAttempts: number;
  /** Runs an execution to its end; never throws. */
  execute: (claim: Claim) => Promise<void>;
}

/** Claims due tasks for free lanes, oldest first: one run per work directory, and at most `maxConcurrentRuns` (contract 4.5). */
export class Dispatcher {
  readonly stage: Stage;
  readonly #options: DispatcherOptions;
  /** Work directories, as real paths, with a run in progress. */
  readonly #lanes = new Set<string>();
  readonly #runs = new Set<Promise<void>>();
  #lastChance = false;
  #draining = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { clock, bells } = options;
    this.stage = new Stage({
      name: "dispatcher",
      bell: BELL.dispatcher,
      clock,
      bells,
      step: () => this.#step(),
    });
  }

  /** Starts no more runs; those in progress may finish. */
  drain(): void {
    this.#draining = true;
  }

  /** How many runs are in progress. */
  get running(): number {
    return this.#runs.size;
  }

  /** Resolves when no run is in progress. */
  async settled(): Promise<void> {
    while (this.#runs.size > 0) await Promise.allSettled([...this.#runs]);
  }

  async #step(): Promise<number> {
    const { db, clock, engines, maxConcurrentRuns } = this.#options;
    const free = maxConcurrentRuns - this.#slotsTaken();
    // The end of a run rings the bell, so this round can be skipped.
    if (this.#draining || free <= 0) return Infinity;
    const now = clock.now();
    const heads = await listLaneHeads(db, now, engines.defaultName);
    const chosen: { task: WaitingTask; lane: string }[] = [];
    const limited = new Map<string, number>();
    for (const task of heads) {
      if (task.limited_until !== null) limited.set(task.engine || engines.defaultName, task.limited_until);
      if (task.limited_until !== null || chosen.length === free) continue;
      const lane = laneOf(task.work_dir);
      if (this.#lanes.has(lane)) continue;
      if (this.#isLastChance(task)) {
        if (this.#lastChance) continue;
        this.#lastChance = true;
      }
      this.#lanes.add(lane);
      chosen.push({ task, lane });
    }
    const claims = await Promise.allSettled(chosen.map(({ task, lane }) => this.#claim(task, lane, now)));
    for (const claim of claims) if (claim.status === "rejected") throw claim.reason;
    await this.#noteWaits(limited, now);
    const next = Math.min(await nextDueAt(db, now) ?? Infinity, ...limited.values());
    return Math.max(0, next - clock.now());
  }

  // As many runs as there are slots may wait beside those that work: more would be processes without a bound.
  #slotsTaken(): number {
    const { waits, maxConcurrentRuns } = this.#options;
    return this.#runs.size - Math.min(waits.size, maxConcurrentRuns);
  }

  // Tasks on their last attempt run one at a time: if one of them crashes the service, it does not use up the last attempt
  // of the others (reliability DSP-4).
  #isLastChance(task: { attempt: number }): boolean {
    return task.attempt > 0 && task.attempt + 1 >= this.#options.maxAttempts;
  }

  #release(task: { attempt: number }, lane: string): void {
    this.#lanes.delete(lane);
    if (this.#isLastChance(task)) this.#lastChance = false;
  }

  // Every task that waits for its engine says so in its reason.
  async #noteWaits(limited: ReadonlyMap<string, number>, now: number): Promise<void> {
    const { db, engines } = this.#options;
    for (const [engine, until] of limited) {
      const reason = waitReason({ engine, until });
      const held = { engine, defaultEngine: engines.defaultName, reason };
      if (await hasUnnotedWait(db, held)) await db.write([noteWait(held, now)]);
    }
  }

  async #claim(task: WaitingTask, lane: string, now: number): Promise<void> {
    const { db, engines } = this.#options;
    let won = false;
    let execution: NewExecution;
    try {
      execution = {
        session_key: task.session_key,
        worker_id: task.worker_id,
        task_id: task.id,
        execution_id: newId(),
        message_id: task.message_id,
        attempt: task.attempt + 1,
        run_id: crypto.randomUUID(),
        worker_name: task.worker_name,
        session_id: task.session_key,
        engine: engines.find(task.engine)?.name ?? task.engine,
        instruction: await findInstruction(db, task.id),
        created_at: now,
      };
      ({ won } = await db.write([
        ...claimTask(task.id, execution.execution_id, now),
        insertExecution(execution),
      ]));
    } finally {
      if (!won) this.#release(task, lane);
    }
    if (won) faultPoint("claim.post");
    if (won) this.#run({ execution, task, workDir: task.work_dir }, lane);
  }

  #run(claim: Claim, lane: string): void {
    const run = this.#options.execute(claim).finally(() => {
      this.#release(claim.task, lane);
      this.#runs.delete(run);
      this.stage.wake();
    });
    this.#runs.add(run);
  }
}

/** The lane of a work directory: its real path, so that two names of one directory are one lane. */
function laneOf(workDir: string): string {
  try {
    return Deno.realPathSync(workDir);
  } catch {
    return workDir;
  }
}
