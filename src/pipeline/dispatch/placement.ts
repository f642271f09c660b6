// Assigns tasks of workers on other machines to runners (contract 18).
import type { Clock } from "../../base/clock.ts";
import { join } from "node:path";
import { buildDataPaths, type DataPaths, getHomeDir, getTreeDir } from "../../base/paths.ts";
import type { Block } from "../../domain/work/block.ts";
import { getLauncherHold } from "../../domain/work/launch.ts";
import { getShortId } from "../../domain/work/tree.ts";
import type { LeaseTimes } from "../../domain/workers/runner.ts";
import type { ClaimRequest, ClaimRequests } from "../../run/remote/claim_requests.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import type { NewExecution } from "../../store/work/execution.ts";
import {
  type BusyWorkDir,
  claimHome,
  insertLease,
  keepHomeless,
  listBusyLanes,
  listBusyWorkDirs,
} from "../../store/workers/remote_run.ts";
import { claimLaunch, type OpenLaunch, rejectLaunch } from "../../store/workers/launch.ts";
import { listRunnerRows, type RunnerRow } from "../../store/workers/runner.ts";
import type { WaitingTask } from "../../store/work/task_queue.ts";
import {
  buildMissingRunner,
  type CandidateOptions,
  type Candidates,
  findRunnerFault,
  isHomeless,
  selectCandidates,
} from "./candidates.ts";
import { findTaskFault, type Launching, type LaunchingRound } from "./launching.ts";

interface PlacementOptions extends CandidateOptions {
  db: Database;
  clock: Clock;
  paths: DataPaths;
  polls: ClaimRequests;
  times: LeaseTimes;
  launching: Launching;
}

/** A waiting claim request, and the work directory of the task on its runner, or null for a new one. */
export interface RunnerSlot {
  request: ClaimRequest;
  workDir: string | null;
  /** The directory of the runner. */
  workRoot: string;
}

/**
 * A slot on a runner, a launcher to start one, no slot yet (with a reason if a launcher is full), a block, or a launch whose runner cannot
 * have the run.
 */
type PlacementResult =
  | { kind: "slot"; slot: RunnerSlot }
  | { kind: "launch"; launcher: string }
  | { kind: "later"; reason?: string }
  | { kind: "block"; block: Block }
  | { kind: "unfit"; rejection: Statement };

export class Placement {
  readonly #options: PlacementOptions;

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** Whether a runner waits for a task. */
  get hasClaims(): boolean {
    return this.#options.polls.free.length > 0;
  }

  /** Whether a launcher could start a runner. */
  get hasLaunchers(): boolean {
    return this.#options.launching.hasLaunchers;
  }

  /** Lists the tasks whose launched runners wait for them. */
  listLaunchedTasks(): Promise<WaitingTask[]> {
    const { polls, launching } = this.#options;
    const launched = polls.free.filter(({ runner }) => runner.launcher !== "");
    return launching.listTasks(launched.map(({ runner }) => runner.id));
  }

  /** Stores a launch, whose command the launch stage runs. */
  launch(task: WaitingTask, launcher: string, now: number): Promise<void> {
    return this.#options.launching.store(task, launcher, now);
  }

  /** Builds the statement that ends the launch of a task that may not start now. It is no failed start. */
  buildRejection(slot: RunnerSlot | null): Statement[] {
    const id = slot === null ? undefined : this.getLaunchId(slot);
    return id === undefined ? [] : [rejectLaunch(id, "")];
  }

  /** Returns the launch that started the runner of a slot, if any. Its id becomes that of the execution. */
  getLaunchId({ request: { runner } }: RunnerSlot): string | undefined {
    return runner.launcher === "" ? undefined : runner.id;
  }

  /** Reads the runners when one of these tasks needs a runner, and what their runs use. */
  async startRound(tasks: readonly WaitingTask[], now: number): Promise<PlacementRound> {
    const { db, launching } = this.#options;
    const away = tasks.filter(({ runs_on }) => runs_on !== "[]");
    const lanes = tasks.every(({ lane }) => lane === "") ? [] : await listBusyLanes(db);
    if (away.length === 0) {
      const launches = launching.emptyRound;
      return new PlacementRound(this.#options, { runners: [], busy: [], lanes, launches }, now);
    }
    // Most workers have a home runner and run nowhere else. So this does not read the other runners.
    const homes = away.every((task) => task.home !== "" && !isHomeless(task))
      ? [...new Set(away.map(({ home }) => home))]
      : null;
    const runners = await listRunnerRows(db, homes);
    const busy = await listBusyWorkDirs(db, runners.map(({ id }) => id));
    const launches = await launching.startRound(now);
    return new PlacementRound(this.#options, { runners, busy, lanes, launches }, now);
  }

  /**
   * Builds the statements that lease a run to a runner, and make the runner the home of a worker that has one. Both are guarded.
   */
  buildLease(
    { request: { runner, requestId }, workDir, workRoot }: RunnerSlot,
    { execution_id, worker_id, tree_id = "" }: NewExecution,
  ): Statement[] {
    const { clock, times } = this.#options;
    const lease = {
      execution_id,
      runner_id: runner.id,
      request_id: requestId,
      epoch: runner.epoch,
      work_dir: workDir ?? getRunDir(workRoot, { execution_id, tree_id }),
      lease_until: clock.now() + times.lease_ms,
    };
    const isLaunched = runner.launcher !== "";
    return [
      ...insertLease(lease),
      ...(isLaunched ? claimLaunch(runner.id) : []),
      ...(workDir === null && tree_id === "" ? keepHomeless(worker_id) : []),
      ...(workDir === null || isLaunched ? [] : claimHome(worker_id, runner.name)),
    ];
  }

  /** Whether the claim request still waits. A run given to an ended request would be lost. */
  isOpen({ request }: RunnerSlot): boolean {
    return this.#options.polls.isOpen(request);
  }

  /** Keeps the claim request open until `giving` has stored its run. */
  give<T>({ request }: RunnerSlot, giving: Promise<T>): Promise<T> {
    return this.#options.polls.give(request, giving);
  }
}

/** The runners, and what their runs use. */
interface RunnerLoad {
  runners: readonly RunnerRow[];
  busy: readonly BusyWorkDir[];
  lanes: readonly { worker_id: string; lane: string }[];
  launches: LaunchingRound;
}

/** Assigns the tasks of one dispatcher round. */
export class PlacementRound {
  readonly #options: PlacementOptions;
  readonly #runners: readonly RunnerRow[];
  readonly #busy: ReadonlySet<string>;
  readonly #busyLanes: Set<string>;
  readonly #launches: LaunchingRound;
  /** Number of runs by runner. */
  readonly #runs = new Map<string, number>();
  readonly #now: number;
  /** Claim requests without a task in this round, the longest waiting first. */
  readonly #free: Set<ClaimRequest>;
  /** Cached, because most workers have the same requirements. */
  readonly #candidates = new Map<string, Candidates>();

  constructor(options: PlacementOptions, { runners, busy, lanes, launches }: RunnerLoad, now: number) {
    this.#options = options;
    this.#launches = launches;
    this.#busyLanes = new Set(
      [...lanes, ...launches.launches.values()].map(({ worker_id, lane }) => buildLock(worker_id, lane)),
    );
    this.#runners = runners;
    this.#busy = new Set(busy.map(({ runner_id, work_dir }) => buildLock(runner_id, work_dir)));
    for (const { runner_id } of busy) this.#runs.set(runner_id, (this.#runs.get(runner_id) ?? 0) + 1);
    this.#now = now;
    this.#free = new Set(options.polls.free);
  }

  /** Whether a runner has a run of the task's lane. */
  isLaneBusy({ worker_id, lane }: WaitingTask): boolean {
    return lane !== "" && this.#busyLanes.has(buildLock(worker_id, lane));
  }

  findSlot(task: WaitingTask): PlacementResult {
    const launch = this.#launches.launches.get(task.id);
    if (launch !== undefined) return this.#findLaunchedSlot(task, launch);
    if (task.gated === 1) return { kind: "block", block: GATED };
    const found = this.#findPlace(task);
    return this.isLaneBusy(task) && found.kind !== "block" ? { kind: "later" } : found;
  }

  // A connected runner that can take the run comes before a launcher.
  #findPlace(task: WaitingTask): PlacementResult {
    const candidates = this.#findCandidates(task);
    const { online, wanted } = candidates;
    for (const request of this.#free) {
      const runner = online.get(request.runner.id);
      if (runner?.epoch !== request.runner.epoch || !this.#hasRoom(runner)) continue;
      const workRoot = runner.work_root;
      if (isHomeless(task)) return { kind: "slot", slot: { request, workRoot, workDir: null } };
      const workDir = this.#findWorkDir(runner, task);
      if (workDir !== null) return { kind: "slot", slot: { request, workRoot, workDir } };
    }
    // A runner with a free slot claims again soon.
    const isExpected = [...online.values()].some((runner) => this.#hasRoom(runner));
    const choice = isExpected ? null : this.#launches.choose(task, wanted);
    if (choice !== null && choice.kind !== "block") return choice;
    if (online.size > 0) return { kind: "later" };
    const block = buildMissingRunner(task, candidates);
    if (choice === null) return { kind: "block", block };
    return {
      kind: "block",
      block: {
        ...block,
        held: choice.waitsFor === null ? block.held : getLauncherHold(choice.waitsFor),
        until: choice.until,
        reason: `${block.reason}, and ${choice.reason}`,
      },
    };
  }

  #hasRoom({ id, max_runs }: RunnerRow): boolean {
    return (this.#runs.get(id) ?? 0) < max_runs;
  }

  // The runner of a launch gets its run only, and only if it can do it.
  #findLaunchedSlot(task: WaitingTask, launch: OpenLaunch): PlacementResult {
    const request = [...this.#free].find(({ runner }) => runner.id === launch.id);
    if (request === undefined || launch.deadline_at === 0) return { kind: "later" };
    const { runner } = request;
    const fault = findRunnerFault(
      selectCandidates(this.#options, task, { runners: [runner], now: this.#now }),
      request.boxFault,
    );
    if (fault !== null) return { kind: "unfit", rejection: rejectLaunch(launch.id, fault) };
    const isChanged = task.gated === 1 || findTaskFault(task) !== null;
    if (isChanged) return { kind: "unfit", rejection: rejectLaunch(launch.id, "") };
    const workDir = isHomeless(task) ? null : this.#findWorkDir(runner, task);
    return { kind: "slot", slot: { request, workRoot: runner.work_root, workDir } };
  }

  // Returns the work directory on the runner, or null while it has a run.
  #findWorkDir(runner: RunnerRow, task: WaitingTask): string | null {
    // A directory that the service chose lives below the work root of the runner.
    const own = task.work_dir === join(this.#options.paths.workers, task.worker_id);
    const workDir = own ? join(runner.work_root, "workers", task.worker_id) : task.work_dir;
    return this.#busy.has(buildLock(runner.id, workDir)) ? null : workDir;
  }

  #findCandidates(task: WaitingTask): Candidates {
    const key = JSON.stringify([
      ...[task.home, task.runs_on, task.admin, task.boxed, task.has_repo, task.secret, task.engine],
    ]);
    const before = this.#candidates.get(key);
    if (before !== undefined) return before;
    const found = selectCandidates(this.#options, task, { runners: this.#runners, now: this.#now });
    this.#candidates.set(key, found);
    return found;
  }

  /** Assigns the claim request, which gets no other task in this round. The lane of the task is busy. */
  take(task: WaitingTask, { request }: RunnerSlot): void {
    const { id } = request.runner;
    this.#free.delete(request);
    this.#runs.set(id, (this.#runs.get(id) ?? 0) + 1);
    this.#busyLanes.add(buildLock(task.worker_id, task.lane));
  }

  /** Counts a launch of this round. */
  takeLaunch(task: WaitingTask, launcher: string): void {
    this.#launches.take(launcher, task.worker_id);
    this.#busyLanes.add(buildLock(task.worker_id, task.lane));
  }
}

const GATED: Block = {
  held: "runner:gate",
  until: null,
  reason:
    "gates run on the service's machine only, but its worker runs on runners. Remove the gate, or the worker's labels",
  whom: { kind: "all" },
};

/** Returns the directory of one run on a runner: a worktree, or an empty directory. */
function getRunDir(workRoot: string, { execution_id, tree_id }: { execution_id: string; tree_id: string }) {
  const paths = buildDataPaths(workRoot);
  return tree_id === ""
    ? getHomeDir(paths, execution_id)
    : getTreeDir(paths, execution_id, getShortId(tree_id));
}

function buildLock(owner: string, name: string): string {
  return `${owner}\0${name}`;
}
