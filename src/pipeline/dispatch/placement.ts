// Assigns tasks of workers on other machines to runners (contract 18).
import type { Clock } from "../../base/clock.ts";
import { join } from "node:path";
import type { DataPaths } from "../../base/paths.ts";
import type { GatewayKind } from "../../domain/call/vocabulary.ts";
import type { Block } from "../../domain/work/block.ts";
import { type LeaseTimes, NO_HOME, RUNNER_SILENT_MS, type RunnerClaim } from "../../domain/workers/runner.ts";
import type { Catalog } from "../../engine/catalog.ts";
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
import { findTaskFault, type Launching, type LaunchingRound } from "./launching.ts";

interface PlacementOptions {
  db: Database;
  clock: Clock;
  paths: DataPaths;
  engines: Catalog;
  polls: ClaimRequests;
  times: LeaseTimes;
  /** Returns the kind of a gateway, or null if the configuration has none of this name. */
  findGatewayKind: (name: string) => GatewayKind | null;
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

  /** Reads the runners when one of these tasks needs a runner. */
  async startRound(tasks: readonly WaitingTask[], now: number): Promise<PlacementRound> {
    const { db, launching } = this.#options;
    const away = tasks.filter(({ runs_on }) => runs_on !== "[]");
    const none = { runners: [], busy: [], lanes: [] };
    if (away.length === 0) {
      return new PlacementRound(this.#options, { ...none, launches: launching.emptyRound }, now);
    }
    // Most workers have a home runner and run nowhere else. So this does not read the other runners.
    const homes = away.every(({ home }) => home !== "" && home !== NO_HOME)
      ? [...new Set(away.map(({ home }) => home))]
      : null;
    const runners = await listRunnerRows(db, homes);
    const busy = await listBusyWorkDirs(db, runners.map(({ id }) => id));
    const lanes = away.every(({ lane }) => lane === "") ? [] : await listBusyLanes(db);
    const launches = await launching.startRound(now);
    return new PlacementRound(this.#options, { runners, busy, lanes, launches }, now);
  }

  /**
   * Builds the statements that lease a run to a runner, and make the runner the home of the worker, unless that is none. Both are guarded.
   */
  buildLease(
    { request: { runner, requestId }, workDir, workRoot }: RunnerSlot,
    { execution_id, worker_id }: NewExecution,
  ): Statement[] {
    const { clock, times } = this.#options;
    const lease = {
      execution_id,
      runner_id: runner.id,
      request_id: requestId,
      epoch: runner.epoch,
      work_dir: workDir ?? join(workRoot, "homes", execution_id),
      lease_until: clock.now() + times.lease_ms,
    };
    const isLaunched = runner.launcher !== "";
    return [
      ...insertLease(lease),
      ...(isLaunched ? claimLaunch(runner.id) : []),
      ...(workDir === null ? keepHomeless(worker_id) : isLaunched ? [] : claimHome(worker_id, runner.name)),
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

/** The runners that remain after each requirement, in the order in which a person would check. */
interface Candidates {
  wanted: readonly string[];
  engine: string;
  /** The gateway through which the engine reaches its model. */
  gateway: string | null;
  labelled: RunnerRow[];
  allowed: RunnerRow[];
  boxing: RunnerRow[];
  trusted: RunnerRow[];
  able: RunnerRow[];
  online: ReadonlyMap<string, RunnerRow>;
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
  readonly #seenAfter: number;
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
    this.#seenAfter = now - RUNNER_SILENT_MS;
    this.#free = new Set(options.polls.free);
  }

  findSlot(task: WaitingTask): PlacementResult {
    const launch = this.#launches.launches.get(task.id);
    if (launch !== undefined) return this.#findLaunchedSlot(task, launch);
    if (task.gated === 1) return { kind: "block", block: GATED };
    const found = this.#findPlace(task);
    const isBusy = task.lane !== "" && this.#busyLanes.has(buildLock(task.worker_id, task.lane));
    return isBusy && found.kind !== "block" ? { kind: "later" } : found;
  }

  // A connected runner that can take the run comes before a launcher.
  #findPlace(task: WaitingTask): PlacementResult {
    const candidates = this.#findCandidates(task);
    const { online, wanted } = candidates;
    for (const request of this.#free) {
      const runner = online.get(request.runner.id);
      if (runner?.epoch !== request.runner.epoch || !this.#hasRoom(runner)) continue;
      const workRoot = runner.work_root;
      if (task.home === NO_HOME) return { kind: "slot", slot: { request, workRoot, workDir: null } };
      const workDir = this.#findWorkDir(runner, task);
      if (workDir !== null) return { kind: "slot", slot: { request, workRoot, workDir } };
    }
    // A runner with a free slot claims again soon.
    const isExpected = [...online.values()].some((runner) => this.#hasRoom(runner));
    const choice = isExpected ? null : this.#launches.choose(task, wanted);
    if (choice !== null && choice.kind !== "block") return choice;
    if (online.size > 0) return { kind: "later" };
    const block = buildBlock(task, candidates);
    if (choice === null) return { kind: "block", block };
    return {
      kind: "block",
      block: { ...block, until: choice.until, reason: `${block.reason}, and ${choice.reason}` },
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
    const fault = findRunnerFault(this.#selectCandidates(task, [runner]));
    if (fault !== null) return { kind: "unfit", rejection: rejectLaunch(launch.id, fault) };
    const isChanged = task.gated === 1 || findTaskFault(task) !== null;
    if (isChanged) return { kind: "unfit", rejection: rejectLaunch(launch.id, "") };
    const workDir = task.home === NO_HOME ? null : this.#findWorkDir(runner, task);
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
    const key = JSON.stringify([task.home, task.runs_on, task.admin, task.boxed, task.secret, task.engine]);
    const before = this.#candidates.get(key);
    if (before !== undefined) return before;
    const found = this.#selectCandidates(task, this.#runners);
    this.#candidates.set(key, found);
    return found;
  }

  #selectCandidates(task: WaitingTask, runners: readonly RunnerRow[]): Candidates {
    const { engines, findGatewayKind } = this.#options;
    const configured = engines.find(task.engine);
    const engine = configured?.name ?? task.engine;
    const gateway = configured?.config.gateway ?? null;
    const kind = gateway === null ? null : findGatewayKind(gateway);
    const wanted = JSON.parse(task.runs_on) as string[];
    const labelled = runners.filter(({ name, labels }) =>
      task.home === "" || task.home === NO_HOME
        ? isSubset(wanted, JSON.parse(labels) as string[])
        : name === task.home
    );
    const allowed = labelled.filter(({ allow_admin }) => task.admin === 0 || allow_admin === 1);
    const boxing = allowed.filter(({ box }) => task.boxed === 0 || box === 1);
    const trusted = boxing.filter(({ secrets }) => task.secret === 0 || secrets === 1);
    const able = trusted.filter(({ engines }) =>
      (JSON.parse(engines) as RunnerClaim["engines"]).some(({ name, gateways }) =>
        name === engine && (kind === null || gateways.includes(kind))
      )
    );
    const online = new Map(able.filter((row) => this.#isOnline(row)).map((row) => [row.id, row]));
    return { wanted, engine, gateway, labelled, allowed, boxing, trusted, able, online };
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
    this.#launches.take(launcher);
    this.#busyLanes.add(buildLock(task.worker_id, task.lane));
  }

  #isOnline({ draining, last_seen_at }: RunnerRow): boolean {
    return draining === 0 && (last_seen_at ?? 0) > this.#seenAfter;
  }
}

const GATED: Block = {
  held: "runner:gate",
  until: null,
  reason:
    "gates run on the service's machine only, but its worker runs on runners. Remove the gate, or the worker's labels",
  whom: { kind: "all" },
};

function isSubset(some: readonly string[], all: readonly string[]): boolean {
  return some.every((one) => all.includes(one));
}

function buildLock(owner: string, name: string): string {
  return `${owner}\0${name}`;
}

/** Returns why the only candidate cannot have the run, or null. "" if the worker was changed since. */
function findRunnerFault(
  { labelled, allowed, boxing, trusted, able, engine, gateway }: Candidates,
): string | null {
  if (able.length > 0) return null;
  if (labelled.length === 0) return "";
  if (allowed.length === 0) return "its worker holds *:*, which the launcher may not run";
  if (boxing.length === 0) {
    return "its worker needs a box, and the runner of the job cannot set one up. Install bubblewrap there";
  }
  if (trusted.length === 0) return "its worker names a secret, which launched runners do not get";
  const using = gateway === null ? "" : ` with a program that can use the gateway ${gateway}`;
  return `the runner of the job does not have the engine ${engine}${using}`;
}

/** Builds the block that names the first requirement without a runner. */
function buildBlock(
  task: WaitingTask,
  { wanted, engine, gateway, labelled, allowed, boxing, trusted, able }: Candidates,
): Block {
  const home = task.home === NO_HOME ? "" : task.home;
  const who = home === "" ? `runner with the labels ${wanted.join(", ")}` : `runner ${home}`;
  const only = labelled.length === 1 || home !== "";
  const reason = labelled.length === 0
    ? home === ""
      ? `no ${who} exists`
      : `its home, the ${who}, was removed. Give it another with: svc ctl worker rehome`
    : allowed.length === 0
    ? `no ${who} may run a worker that holds *:*. Add one with --allow-admin`
    : boxing.length === 0
    ? `its worker needs a box, and no ${who} can set one up. Install bubblewrap there and restart it`
    : trusted.length === 0
    ? `its worker names a secret in its variables, and no ${who} gets secrets. Add one with --secrets`
    : able.length === 0
    ? `no ${who} has the engine ${engine}${
      gateway === null ? "" : ` with a program that can use the gateway ${gateway}`
    }`
    : able.some(({ draining }) => draining === 1)
    ? `${only ? `the runner ${able[0]?.name} is` : `every ${who} is`} draining or silent`
    : home === ""
    ? `no ${who} is online`
    : `its home, the ${who}, is not online`;
  return {
    held: `runner:${home === "" ? wanted.join(",") : home}`,
    until: null,
    reason,
    whom: { kind: "all" },
  };
}
