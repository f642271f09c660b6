// Task: pending -> running with a new execution in the same batch. With a gate: occurrence -> gating.
import { allEnded } from "../../base/settle_all.ts";
import type { Clock } from "../../base/clock.ts";
import type { Catalog } from "../../engine/catalog.ts";
import { faultPoint } from "../../base/fault_point.ts";
import type { Gate } from "../../domain/work/command.ts";
import { realPath } from "../../base/paths.ts";
import { turn } from "../../base/yield_to_loop.ts";
import { askGate, type Claim, executionOf, startRun } from "../../run/claim.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import { type Database, isDuplicate, type Statement } from "../../store/db/database.ts";
import type { NewExecution } from "../../store/work/execution.ts";
import { reserve } from "../../store/workers/budget_ledger.ts";
import { findWork } from "../../store/work/task.ts";
import { releaseTasks } from "../../store/work/task_transitions.ts";
import { nextDueAt, type WaitingTask } from "../../store/work/task_queue.ts";
import { WAKEUP, type Wakeups } from "../../base/wakeups.ts";
import type { Admission } from "./admission.ts";
import type { Placement, PlacementRound, Spot } from "./placement.ts";
import { type Chosen, Heads, noteOf } from "./next_tasks.ts";
import { Stage } from "../stage/stage.ts";

interface DispatcherOptions {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  engines: Catalog;
  /** Runs that wait for a person. They keep their work directory, but use no slot. */
  waits: HumanWaits;
  admission: Admission;
  placement: Placement;
  maxConcurrentRuns: number;
  maxAttempts: number;
  executor: {
    readonly running: readonly { execution_id: string }[];
    /** Runs an execution to its end. Never throws. */
    execute: (claim: Claim) => Promise<void>;
    /** Asks the gate first, which decides whether the execution runs (contract 15). */
    executeGated: (claim: Claim, gate: Gate) => Promise<void>;
  };
}

/** A stored claim, and the gate that decides whether it runs. */
interface Claimed {
  execution: NewExecution;
  gate: Gate | null;
}

/** The decisions of a round. */
interface Looked {
  chosen: Chosen[];
  notes: Statement[];
  /** When the first block of a task ends. */
  nextAt: number;
  /** Whether this round left work directories unread. */
  more: boolean;
}

/**
 * Claims due tasks for free work directories, oldest first: one run per directory, and at most `maxConcurrentRuns` (contract
 * 4.5).
 */
export class Dispatcher {
  readonly stage: Stage;
  readonly #options: DispatcherOptions;
  /** Real paths of the work directories with a run in progress. */
  readonly #lanes = new Set<string>();
  readonly #runs = new Set<Promise<void>>();
  readonly #heads: Heads;
  #lastChance = false;
  #draining = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { db, clock, wakeups } = options;
    this.#heads = new Heads(db);
    this.stage = new Stage({
      name: "dispatcher",
      wakeup: WAKEUP.dispatcher,
      clock,
      wakeups,
      step: () => options.admission.inTurn(() => this.#step()),
    });
  }

  /** Starts no more runs. Runs in progress may finish. */
  drain(): void {
    this.#draining = true;
  }

  get running(): number {
    return this.#runs.size;
  }

  /** Resolves when no run is in progress. */
  async settled(): Promise<void> {
    while (this.running > 0) await Promise.allSettled([...this.#runs]);
  }

  async #step(): Promise<number> {
    const { db, clock, placement } = this.#options;
    // The end of a run wakes this stage, so this round can be skipped.
    if (this.#draining || this.#free() <= 0 && !placement.hasClaims) return Infinity;
    const now = clock.now();
    const { chosen, notes, nextAt, more } = await this.#look(now);
    // A claim request may have ended meanwhile. Another one may take its task.
    const open = chosen.filter(({ spot }) => spot === null || placement.isOpen(spot));
    await allEnded(open.map((one) => this.#claim(one, now)));
    // The new blocks may have hidden tasks that could start.
    if (notes.length > 0) return await db.write(notes).then(() => 0);
    // Other work of the event loop goes first.
    if (more || open.length < chosen.length) return await turn().then(() => 0);
    return Math.max(0, Math.min(await nextDueAt(db, now) ?? Infinity, nextAt) - clock.now());
  }

  async #look(now: number): Promise<Looked> {
    const { admission, placement } = this.#options;
    // A run that ends during this round may have changed the next tasks of its directory, so the directory stays busy.
    const busy = new Set(this.#lanes);
    const { tasks: heads, more } = await this.#heads.look(now);
    const looked: Looked = { chosen: [], notes: [], nextAt: Infinity, more };
    if (heads.length === 0) return looked;
    const [round, places] = await Promise.all([admission.round(now), placement.round(heads, now)]);
    let free = this.#free();
    for (const task of heads) {
      const place = this.#placeOf(task, places, { busy, free, now });
      if (place === null) continue;
      if (place.kind === "note") {
        looked.notes.push(...place.notes);
        continue;
      }
      const verdict = await round.judge(task);
      if (verdict.hold !== null) {
        looked.nextAt = Math.min(looked.nextAt, verdict.hold.until ?? Infinity);
        looked.notes.push(...noteOf(task, verdict.hold, now));
        continue;
      }
      const { lane, spot } = place;
      if (spot === null && this.#isLastChance(task)) {
        if (this.#lastChance) continue;
        this.#lastChance = true;
      }
      if (spot === null) {
        this.#lanes.add(lane);
        free--;
      } else places.take(spot);
      looked.chosen.push({ task, lane, spot, reservation: verdict.reservation });
    }
    return looked;
  }

  // Finds where a task could start now. Returns null when the task has to wait for its turn.
  #placeOf(
    task: WaitingTask,
    places: PlacementRound,
    { busy, free, now }: { busy: ReadonlySet<string>; free: number; now: number },
  ): { kind: "start"; lane: string; spot: Spot | null } | { kind: "note"; notes: Statement[] } | null {
    if (task.runs_on === "[]") {
      // Two paths to one directory share one lock.
      const lane = realPath(task.work_dir);
      return free <= 0 || busy.has(lane) || this.#lanes.has(lane)
        ? null
        : { kind: "start", lane, spot: null };
    }
    const place = places.placeOf(task);
    switch (place.kind) {
      case "spot":
        return { kind: "start", lane: "", spot: place.spot };
      case "hold":
        return { kind: "note", notes: noteOf(task, place.hold, now) };
      case "later": {
        // The missing runner is available again, so the task only waits for its turn.
        const isOver = task.held.startsWith("runner:");
        return isOver ? { kind: "note", notes: [releaseTasks(task.worker_id, task.held, now)] } : null;
      }
    }
  }

  // Waiting runs release their slots, but at most as many as there are slots. Otherwise the number of processes would be
  // unbounded.
  #free(): number {
    const { waits, executor, maxConcurrentRuns } = this.#options;
    const waiting = waits.countOf(executor.running.map(({ execution_id }) => execution_id));
    return maxConcurrentRuns - this.running + Math.min(waiting, maxConcurrentRuns);
  }

  // Tasks on their last attempt run one at a time: a task that crashes the service must not use up the last attempt of others
  // (reliability DSP-4).
  #isLastChance(task: { attempt: number }): boolean {
    return task.attempt > 0 && task.attempt + 1 >= this.#options.maxAttempts;
  }

  #release(task: { attempt: number }, lane: string): void {
    this.#lanes.delete(lane);
    if (this.#isLastChance(task)) this.#lastChance = false;
  }

  #claim(chosen: Chosen, now: number): Promise<void> {
    const { spot } = chosen;
    return spot === null ? this.#claimHere(chosen, now) : this.#claimFor(spot, chosen, now);
  }

  async #claimHere(chosen: Chosen, now: number): Promise<void> {
    const { task, lane } = chosen;
    let claimed: Claimed | null = null;
    try {
      claimed = await this.#store(chosen, now);
    } finally {
      if (claimed === null) this.#release(task, lane);
    }
    if (claimed === null) return;
    this.#run({ execution: claimed.execution, task, workDir: task.work_dir }, claimed.gate, lane);
  }

  async #claimFor(spot: Spot, chosen: Chosen, now: number): Promise<void> {
    try {
      await this.#options.placement.give(spot, this.#store(chosen, now));
    } catch (error) {
      // The claim request received a run already.
      if (!isDuplicate(error)) throw error;
    }
  }

  async #store({ task, reservation, spot }: Chosen, now: number): Promise<Claimed | null> {
    const { db, engines, placement } = this.#options;
    const work = await findWork(db, task.id);
    // A gate that has passed is not asked again (contract 15).
    const gate = work === null || work.passed !== null ? null : JSON.parse(work.gate) as Gate | null;
    // The schedule received a gate meanwhile, and gates run on this machine only.
    if (gate !== null && spot !== null) return null;
    const engine = engines.find(task.engine)?.name ?? task.engine;
    const instruction = work?.passed ?? work?.instruction ?? "";
    const execution = executionOf(task, { engine, instruction }, now);
    const { won } = await db.write([
      ...(gate === null ? startRun(execution, task.type) : askGate(execution)),
      ...(spot === null ? [] : placement.leaseOf(spot, execution)),
      reserve(execution.execution_id, reservation.targets, reservation.expected),
      ...(task.held === "" ? [] : [releaseTasks(task.worker_id, task.held, now)]),
    ]);
    if (!won) return null;
    faultPoint("claim.post");
    return { execution, gate };
  }

  #run(claim: Claim, gate: Gate | null, lane: string): void {
    const { executor } = this.#options;
    const begun = gate === null ? executor.execute(claim) : executor.executeGated(claim, gate);
    const run = begun.finally(() => {
      this.#release(claim.task, lane);
      this.#runs.delete(run);
      this.stage.wake();
    });
    this.#runs.add(run);
  }
}
