// Task: pending -> running with a new execution in the same batch. With a gate: occurrence -> gating.
import { settleAll } from "../../base/settle_all.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { isPlaceHold } from "../../domain/work/block.ts";
import type { Gate } from "../../domain/work/command.ts";
import { type DataPaths, getTreeDir, resolveLinks } from "../../base/paths.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { type Claim, createExecution, startGateRun, startRun } from "../../run/claim.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import { isDuplicate, type Statement } from "../../store/db/database.ts";
import type { NewExecution } from "../../store/work/execution.ts";
import { insertReservation } from "../../store/workers/budget_ledger.ts";
import { getShortId } from "../../domain/work/tree.ts";
import { formatSteers } from "../../domain/work/steer.ts";
import { openTree } from "../../store/work/tree.ts";
import { findWork } from "../../store/work/task.ts";
import { explainWait, unblockTasks } from "../../store/work/task_transitions.ts";
import { findNextDueAt, type WaitingTask } from "../../store/work/task_queue.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import type { Admission } from "./admission.ts";
import type { Placement, PlacementRound, RunnerSlot } from "./placement.ts";
import { buildBlockNote, NextTasks, type TaskStart } from "./next_tasks.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

interface DispatcherOptions extends StageServices {
  paths: DataPaths;
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
    /** Runs the gate first. The gate decides whether the execution runs (contract 15). */
    executeGated: (claim: Claim, gate: Gate) => Promise<void>;
  };
}

/** A stored claim, with the gate that decides whether it runs. */
interface StoredClaim {
  execution: NewExecution;
  gate: Gate | null;
}

interface Decisions {
  chosen: TaskStart[];
  /** Tasks for which a launcher starts a runner. */
  launches: { task: WaitingTask; launcher: string }[];
  notes: Statement[];
  /** When the first block of a task ends. */
  nextAt: number;
  /** Whether this round left work directories unread. */
  more: boolean;
}

/** Where a task starts, which launcher starts a runner for it, or what to store about its wait. */
type TaskPlace =
  | { kind: "start"; lock: string; slot: RunnerSlot | null }
  | { kind: "launch"; launcher: string }
  | { kind: "note"; notes: Statement[] };

/** Claims due tasks for free work directories, oldest first: one run per directory, and at most `maxConcurrentRuns` (contract 4.5). */
export class Dispatcher {
  readonly stage: Stage;
  readonly #options: DispatcherOptions;
  /** Real paths of the work directories with a run in progress. */
  readonly #workDirLocks = new Set<string>();
  readonly #runs = new Set<Promise<void>>();
  readonly #nextTasks: NextTasks;
  #lastChance = false;
  #draining = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { db } = options;
    this.#nextTasks = new NextTasks(db);
    this.stage = new Stage(options, {
      name: "dispatcher",
      wakeup: WAKEUP.dispatcher,
      step: () => options.admission.runExclusive(() => this.#step()),
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
  async waitForRuns(): Promise<void> {
    while (this.running > 0) await Promise.allSettled([...this.#runs]);
  }

  async #step(): Promise<number> {
    const { db, clock, placement } = this.#options;
    // The end of a run wakes this stage, so this round can be skipped.
    const canPlace = placement.hasClaims || placement.hasLaunchers;
    if (this.#draining || this.#countFreeSlots() <= 0 && !canPlace) return Infinity;
    const now = clock.now();
    const { chosen, launches, notes, nextAt, more } = await this.#decide(now);
    // A claim request may have ended meanwhile. Another one may take its task.
    const open = chosen.filter(({ slot }) => slot === null || placement.isOpen(slot));
    await settleAll(open.map((one) => this.#claim(one, now)));
    for (const { task, launcher } of launches) {
      await placement.launch(task, launcher, now);
      faultPoint("launch.stored");
    }
    // The new blocks may have hidden tasks that could start.
    if (notes.length > 0) return await db.write(notes).then(() => 0);
    if (launches.length > 0) return 0;
    // Other work of the event loop goes first.
    if (more || open.length < chosen.length) return await yieldToLoop().then(() => 0);
    return Math.max(0, Math.min(await findNextDueAt(db, now) ?? Infinity, nextAt) - clock.now());
  }

  async #decide(now: number): Promise<Decisions> {
    const { admission, placement } = this.#options;
    // A run that ends during this round may have changed the next tasks of its directory, so the directory stays busy.
    const busy = new Set(this.#workDirLocks);
    const { tasks: next, more } = await this.#nextTasks.read(now);
    const launched = await placement.listLaunchedTasks();
    const tasks = launched.length === 0 ? next : mergeTasks(next, launched);
    const decisions: Decisions = { chosen: [], launches: [], notes: [], nextAt: Infinity, more };
    if (tasks.length === 0) return decisions;
    const [round, placements] = await Promise.all([
      admission.startRound(now),
      placement.startRound(tasks, now),
    ]);
    let free = this.#countFreeSlots();
    for (const task of tasks) {
      const start = this.#findStart(task, placements, { busy, free, now });
      if (start === null) continue;
      if (start.kind === "note") {
        decisions.notes.push(...start.notes);
        continue;
      }
      const verdict = await round.judge(task);
      const rejection = start.kind === "start" ? placement.buildRejection(start.slot) : [];
      if (verdict.block !== null && rejection.length > 0) {
        // The launch ends, and then the task gets its block.
        decisions.notes.push(...rejection);
        continue;
      }
      if (verdict.block !== null) {
        decisions.nextAt = Math.min(decisions.nextAt, verdict.block.until ?? Infinity);
        decisions.notes.push(...buildBlockNote(task, verdict.block, now));
        continue;
      }
      if (start.kind === "launch") {
        placements.takeLaunch(task, start.launcher);
        decisions.launches.push({ task, launcher: start.launcher });
        continue;
      }
      const { lock, slot } = start;
      if (slot === null && this.#isLastChance(task)) {
        if (this.#lastChance) continue;
        this.#lastChance = true;
      }
      if (slot === null) {
        this.#workDirLocks.add(lock);
        free--;
      } else placements.take(task, slot);
      const { reservation, choice } = verdict;
      decisions.chosen.push({ task, lock, slot, reservation, choice });
    }
    return decisions;
  }

  // Finds where a task could start now. Returns null when the task has to wait for its turn.
  #findStart(
    task: WaitingTask,
    placements: PlacementRound,
    { busy, free, now }: { busy: ReadonlySet<string>; free: number; now: number },
  ): TaskPlace | null {
    const isHere = task.runs_on === "[]";
    // Two paths to one directory share one lock.
    const lock = task.lane !== ""
      ? `${task.worker_id} ${task.lane}`
      : isHere
      ? resolveLinks(task.work_dir)
      : "";
    const isBusy = busy.has(lock) || this.#workDirLocks.has(lock);
    if (isHere) {
      return free <= 0 || isBusy || placements.isLaneBusy(task) ? null : { kind: "start", lock, slot: null };
    }
    // The worker has moved to runners during a run on this machine.
    if (isBusy) return null;
    const start = placements.findSlot(task);
    switch (start.kind) {
      case "slot":
        return { kind: "start", lock: "", slot: start.slot };
      case "block":
        return { kind: "note", notes: buildBlockNote(task, start.block, now) };
      case "launch":
        return start;
      case "unfit":
        return { kind: "note", notes: [start.rejection] };
      case "later": {
        // The missing runner is available again, so the task only has to wait in the queue.
        const isOver = isPlaceHold(task.held);
        if (isOver) return { kind: "note", notes: [unblockTasks(task.worker_id, task.held, now)] };
        const { reason = task.reason } = start;
        return reason === task.reason ? null : { kind: "note", notes: [explainWait(task.id, reason, now)] };
      }
    }
  }

  // Waiting runs release their slots, but at most as many as there are slots. Otherwise the number of processes would be unbounded.
  #countFreeSlots(): number {
    const { waits, executor, maxConcurrentRuns } = this.#options;
    const waiting = waits.count(executor.running.map(({ execution_id }) => execution_id));
    return maxConcurrentRuns - this.running + Math.min(waiting, maxConcurrentRuns);
  }

  // Tasks on their last attempt run one at a time: a task that crashes the service must not use up the last attempt of others
  // (reliability DSP-4).
  #isLastChance(task: { attempt: number }): boolean {
    return task.attempt > 0 && task.attempt + 1 >= this.#options.maxAttempts;
  }

  #release(task: { attempt: number }, lock: string): void {
    this.#workDirLocks.delete(lock);
    if (this.#isLastChance(task)) this.#lastChance = false;
  }

  #claim(chosen: TaskStart, now: number): Promise<void> {
    const { slot } = chosen;
    return slot === null ? this.#claimHere(chosen, now) : this.#claimOnRunner(slot, chosen, now);
  }

  async #claimHere(chosen: TaskStart, now: number): Promise<void> {
    const { task, lock } = chosen;
    let claimed: StoredClaim | null = null;
    try {
      claimed = await this.#storeClaim(chosen, now);
    } finally {
      if (claimed === null) this.#release(task, lock);
    }
    if (claimed === null) return;
    const { worker_id, tree_id = "" } = claimed.execution;
    const workDir = tree_id === ""
      ? task.work_dir
      : getTreeDir(this.#options.paths, worker_id, getShortId(tree_id));
    this.#run(
      { execution: claimed.execution, task, needs: task, workDir },
      claimed.gate,
      lock,
    );
  }

  async #claimOnRunner(slot: RunnerSlot, chosen: TaskStart, now: number): Promise<void> {
    try {
      await this.#options.placement.give(slot, this.#storeClaim(chosen, now));
    } catch (error) {
      // The claim request received a run already.
      if (!isDuplicate(error)) throw error;
    }
  }

  async #storeClaim(
    { task, reservation, choice, slot }: TaskStart,
    now: number,
  ): Promise<StoredClaim | null> {
    const { db, placement } = this.#options;
    const work = await findWork(db, task.id);
    // A gate that has passed does not run again (contract 15).
    const gate = work === null || work.passed !== null ? null : JSON.parse(work.gate) as Gate | null;
    // The schedule received a gate meanwhile, and gates run on this machine only.
    if (gate !== null && slot !== null) return null;
    const steers = formatSteers(JSON.parse(work?.steers ?? "[]") as string[]);
    const instruction = (work?.passed ?? work?.instruction ?? "") + (steers === "" ? "" : `\n\n${steers}`);
    const launchId = slot === null ? undefined : placement.getLaunchId(slot);
    const execution = createExecution(task, { choice, instruction, id: launchId }, now);
    const { won } = await db.write([
      ...(gate === null ? startRun(execution, task.type) : startGateRun(execution)),
      ...(slot === null ? [] : placement.buildLease(slot, execution)),
      ...(task.has_repo === 0 ? [] : [openTree(execution, task.lane, { now, isRemote: slot !== null })]),
      insertReservation(execution.execution_id, reservation.targets, reservation.expected),
      // Each launch blocks its own task only.
      ...(task.held === "" || launchId !== undefined ? [] : [unblockTasks(task.worker_id, task.held, now)]),
    ]);
    if (!won) return null;
    faultPoint("claim.post");
    if (launchId !== undefined) faultPoint("launch.claimed");
    return { execution, gate };
  }

  #run(claim: Claim, gate: Gate | null, lock: string): void {
    const { executor } = this.#options;
    const started = gate === null ? executor.execute(claim) : executor.executeGated(claim, gate);
    const run = started.finally(() => {
      this.#release(claim.task, lock);
      this.#runs.delete(run);
      this.stage.wake();
    });
    this.#runs.add(run);
  }
}

function mergeTasks(some: readonly WaitingTask[], more: readonly WaitingTask[]): WaitingTask[] {
  return [...new Map([...some, ...more].map((task) => [task.id, task])).values()];
}
