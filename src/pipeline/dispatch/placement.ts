// Assigns tasks of workers on other machines to runners (contract 18).
import type { Clock } from "../../base/clock.ts";
import { join } from "node:path";
import { buildDataPaths, type DataPaths, getTreeDir } from "../../base/paths.ts";
import type { GatewayKind } from "../../domain/call/vocabulary.ts";
import type { Block } from "../../domain/work/block.ts";
import { getShortId } from "../../domain/work/tree.ts";
import { type LeaseTimes, RUNNER_SILENT_MS, type RunnerClaim } from "../../domain/workers/runner.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { ClaimRequest, ClaimRequests } from "../../run/remote/claim_requests.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import type { NewExecution } from "../../store/work/execution.ts";
import {
  type BusyWorkDir,
  claimHome,
  insertLease,
  listBusyLanes,
  listBusyWorkDirs,
} from "../../store/workers/remote_run.ts";
import { listRunnerRows, type RunnerRow } from "../../store/workers/runner.ts";
import type { WaitingTask } from "../../store/work/task_queue.ts";

interface PlacementOptions {
  db: Database;
  clock: Clock;
  paths: DataPaths;
  engines: Catalog;
  polls: ClaimRequests;
  times: LeaseTimes;
  /** Returns the kind of a gateway, or null if the configuration has none of this name. */
  findGatewayKind: (name: string) => GatewayKind | null;
}

/** A waiting claim request, and the work directory of the task on its runner, or null for a new one. */
export interface RunnerSlot {
  request: ClaimRequest;
  workDir: string | null;
  /** The directory of the runner. */
  workRoot: string;
}

/** A slot on a runner, no slot yet, or a block. */
type PlacementResult = { kind: "slot"; slot: RunnerSlot } | { kind: "later" } | {
  kind: "block";
  block: Block;
};

export class Placement {
  readonly #options: PlacementOptions;

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** Whether a runner waits for a task. */
  get hasClaims(): boolean {
    return this.#options.polls.free.length > 0;
  }

  /** Reads the runners when one of these tasks needs a runner, and what their runs use. */
  async startRound(tasks: readonly WaitingTask[], now: number): Promise<PlacementRound> {
    const { db } = this.#options;
    const away = tasks.filter(({ runs_on }) => runs_on !== "[]");
    const lanes = tasks.every(({ lane }) => lane === "") ? [] : await listBusyLanes(db);
    if (away.length === 0) return new PlacementRound(this.#options, { runners: [], busy: [], lanes }, now);
    // Most workers have a home runner and run nowhere else. So this does not read the other runners.
    const homes = away.every((task) => task.home !== "" && !isHomeless(task))
      ? [...new Set(away.map(({ home }) => home))]
      : null;
    const runners = await listRunnerRows(db, homes);
    const busy = await listBusyWorkDirs(db, runners.map(({ id }) => id));
    return new PlacementRound(this.#options, { runners, busy, lanes }, now);
  }

  /**
   * Builds the statements that lease a run to a runner, and make the runner the home of a worker with one directory. Both are guarded.
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
      work_dir: workDir ?? getTreeDir(buildDataPaths(workRoot), execution_id, getShortId(tree_id)),
      lease_until: clock.now() + times.lease_ms,
    };
    return [...insertLease(lease), ...(workDir === null ? [] : claimHome(worker_id, runner.name))];
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
  cloning: RunnerRow[];
  trusted: RunnerRow[];
  able: RunnerRow[];
  online: ReadonlyMap<string, RunnerRow>;
}

/** The runners, and what their runs use. */
interface RunnerLoad {
  runners: readonly RunnerRow[];
  busy: readonly BusyWorkDir[];
  lanes: readonly { worker_id: string; lane: string }[];
}

/** Assigns the tasks of one dispatcher round. */
export class PlacementRound {
  readonly #options: PlacementOptions;
  readonly #runners: readonly RunnerRow[];
  readonly #busy: ReadonlySet<string>;
  readonly #busyLanes: Set<string>;
  /** Number of runs by runner. */
  readonly #runs = new Map<string, number>();
  readonly #seenAfter: number;
  /** Claim requests without a task in this round, the longest waiting first. */
  readonly #free: Set<ClaimRequest>;
  /** Cached, because most workers have the same requirements. */
  readonly #candidates = new Map<string, Candidates>();

  constructor(options: PlacementOptions, { runners, busy, lanes }: RunnerLoad, now: number) {
    this.#options = options;
    this.#runners = runners;
    this.#busy = new Set(busy.map(({ runner_id, work_dir }) => buildLock(runner_id, work_dir)));
    this.#busyLanes = new Set(lanes.map(({ worker_id, lane }) => buildLock(worker_id, lane)));
    for (const { runner_id } of busy) this.#runs.set(runner_id, (this.#runs.get(runner_id) ?? 0) + 1);
    this.#seenAfter = now - RUNNER_SILENT_MS;
    this.#free = new Set(options.polls.free);
  }

  /** Whether a runner has a run of the task's lane. */
  isLaneBusy({ worker_id, lane }: WaitingTask): boolean {
    return lane !== "" && this.#busyLanes.has(buildLock(worker_id, lane));
  }

  findSlot(task: WaitingTask): PlacementResult {
    if (task.gated === 1) return { kind: "block", block: GATED };
    const candidates = this.#findCandidates(task);
    const { online } = candidates;
    if (online.size === 0) return { kind: "block", block: buildBlock(task, candidates) };
    if (this.isLaneBusy(task)) return { kind: "later" };
    for (const request of this.#free) {
      const runner = online.get(request.runner.id);
      if (runner?.epoch !== request.runner.epoch) continue;
      if ((this.#runs.get(runner.id) ?? 0) >= runner.max_runs) continue;
      const workRoot = runner.work_root;
      if (isHomeless(task)) return { kind: "slot", slot: { request, workRoot, workDir: null } };
      const workDir = this.#findWorkDir(runner, task);
      if (workDir !== null) return { kind: "slot", slot: { request, workRoot, workDir } };
    }
    return { kind: "later" };
  }

  // Returns the work directory on the runner, or null while it has a run.
  #findWorkDir(runner: RunnerRow, task: WaitingTask): string | null {
    // A directory that the service chose lives below the work root of the runner.
    const own = task.work_dir === join(this.#options.paths.workers, task.worker_id);
    const workDir = own ? join(runner.work_root, "workers", task.worker_id) : task.work_dir;
    return this.#busy.has(buildLock(runner.id, workDir)) ? null : workDir;
  }

  #findCandidates(task: WaitingTask): Candidates {
    const { engines, findGatewayKind } = this.#options;
    const configured = engines.find(task.engine);
    const engine = configured?.name ?? task.engine;
    const gateway = configured?.config.gateway ?? null;
    const kind = gateway === null ? null : findGatewayKind(gateway);
    const key = JSON.stringify([
      ...[task.home, task.runs_on, task.admin, task.boxed, task.has_repo, task.secret, engine],
    ]);
    const before = this.#candidates.get(key);
    if (before !== undefined) return before;
    const wanted = JSON.parse(task.runs_on) as string[];
    const labelled = this.#runners.filter(({ name, labels }) =>
      task.home === "" || isHomeless(task)
        ? isSubset(wanted, JSON.parse(labels) as string[])
        : name === task.home
    );
    const allowed = labelled.filter(({ allow_admin }) => task.admin === 0 || allow_admin === 1);
    const boxing = allowed.filter(({ box }) => task.boxed === 0 || box === 1);
    const cloning = boxing.filter(({ repo }) => task.has_repo === 0 || repo === 1);
    const trusted = cloning.filter(({ secrets }) => task.secret === 0 || secrets === 1);
    const able = trusted.filter(({ engines }) =>
      (JSON.parse(engines) as RunnerClaim["engines"]).some(({ name, gateways }) =>
        name === engine && (kind === null || gateways.includes(kind))
      )
    );
    const online = new Map(able.filter((row) => this.#isOnline(row)).map((row) => [row.id, row]));
    const found = { wanted, engine, gateway, labelled, allowed, boxing, cloning, trusted, able, online };
    this.#candidates.set(key, found);
    return found;
  }

  /** Assigns the claim request, which gets no other task in this round. Nor does the lane of the task. */
  take({ request }: RunnerSlot, { worker_id, lane }: WaitingTask): void {
    this.#free.delete(request);
    this.#busyLanes.add(buildLock(worker_id, lane));
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

// The service has the branches of a repository, so that no runner has the directory of such a worker.
function isHomeless({ has_repo }: WaitingTask): boolean {
  return has_repo === 1;
}

function isSubset(some: readonly string[], all: readonly string[]): boolean {
  return some.every((one) => all.includes(one));
}

function buildLock(owner: string, name: string): string {
  return `${owner}\0${name}`;
}

/** Builds the block that names the first requirement without a runner. */
function buildBlock(
  { home, runs_on }: WaitingTask,
  { wanted, engine, gateway, labelled, allowed, boxing, cloning, trusted, able }: Candidates,
): Block {
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
    : cloning.length === 0
    ? `its worker has a repository, and no ${who} can take one. Install git and the version of the service there`
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
    held: `runner:${home === "" ? (JSON.parse(runs_on) as string[]).join(",") : home}`,
    until: null,
    reason,
    whom: { kind: "all" },
  };
}
