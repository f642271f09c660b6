// Which runner gets a task whose worker runs on another machine (contract 18)
import type { Clock } from "../base/clock.ts";
import { join } from "node:path";
import type { DataPaths } from "../base/paths.ts";
import type { Hold } from "../domain/hold.ts";
import { type LeaseTimes, RUNNER_SILENT_MS, SHORT_RUN_MAX_BYTES } from "../domain/runner.ts";
import type { Catalog } from "../engine/catalog.ts";
import type { Poll, Polls } from "../run/polls.ts";
import type { Database, Statement } from "../store/database.ts";
import type { NewExecution } from "../store/execution.ts";
import {
  type BusyPlace,
  insertLease,
  listBusyPlaces,
  type NewRemoteRun,
  setHome,
} from "../store/remote_run.ts";
import { listRunnerRows, type RunnerRow } from "../store/runner.ts";
import type { WaitingTask } from "../store/task_queue.ts";
import { known, type KnownRunner } from "./known_runner.ts";

/** What placement works with. */
interface PlacementOptions {
  db: Database;
  clock: Clock;
  paths: DataPaths;
  engines: Catalog;
  polls: Polls;
  times: LeaseTimes;
}

/** A claim that waits, and the directory there in which the task runs. */
export interface Spot {
  poll: Poll;
  workDir: string;
}

/** Where a task could start: on a runner, not yet, or nowhere at the moment. */
export type Place = { kind: "spot"; spot: Spot } | { kind: "later" } | { kind: "hold"; hold: Hold };

/** Gives tasks to the claims of runners that wait. */
export class Placement {
  readonly #options: PlacementOptions;

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** A look begins: who comes while it goes on may have come too late for it. */
  begin(): void {
    this.#options.polls.unplaced = true;
  }

  /** No task waits at all: one that comes rings the dispatcher's bell, and a claim need not. */
  nothingWaits(): void {
    this.#options.polls.unplaced = false;
  }

  /** Skips a look, unless a runner waits for a task: a claim that comes has to ask for one then. Answers whether it did. */
  skip(): boolean {
    const { polls } = this.#options;
    if (polls.hasFree) return false;
    polls.unplaced = true;
    return true;
  }

  /** Looks at who is there, if one of these tasks needs a runner. */
  async round(tasks: readonly WaitingTask[], now: number): Promise<PlacementRound> {
    const { db } = this.#options;
    const away = tasks.filter(({ runs_on }) => runs_on !== "[]");
    if (away.length === 0) return new PlacementRound(this.#options, [], [], now);
    // Most workers have a home, and their tasks may go nowhere else: the others of a thousand runners are not read for them.
    const homes = away.every(({ home }) => home !== "") ? [...new Set(away.map(({ home }) => home))] : null;
    const runners = await listRunnerRows(db, homes);
    const busy = await listBusyPlaces(db, runners.map(({ id }) => id));
    return new PlacementRound(this.#options, runners, busy, now);
  }

  /** The statements that make a run that of a runner. Guarded by its being there still. */
  claimOf(spot: Spot): (execution: NewExecution) => Statement[] {
    return (execution) => {
      const { lease, home } = this.leaseOf(spot, execution);
      return [...insertLease(lease), ...setHome(execution.worker_id, home)];
    };
  }

  /** The lease by which a run becomes one of a runner, and where its worker's directory is from then on. */
  leaseOf(
    { poll: { runner, claim }, workDir }: Spot,
    { execution_id }: NewExecution,
  ): Pick<NewRemoteRun, "lease" | "home"> {
    const { clock, times } = this.#options;
    const lease = {
      execution_id,
      runner_id: runner.id,
      request_id: claim.request_id,
      epoch: runner.epoch,
      work_dir: workDir,
      lease_until: clock.now() + times.lease_ms,
    };
    return { lease, home: runner.name };
  }

  /** Whether the claim still waits: a run that is given to one that does not is lost. */
  isOpen({ poll }: Spot): boolean {
    return this.#options.polls.isOpen(poll);
  }

  /** Lets the claim wait until `giving` has written it, and look at its row then. A task that it did not get waits for the next claim. */
  async give(spot: Spot, giving: Promise<boolean>): Promise<void> {
    const { polls } = this.#options;
    let isGiven = false;
    try {
      isGiven = await polls.give(spot.poll, giving);
    } finally {
      if (!isGiven) polls.unplaced = true;
    }
  }
}

/** Who could run a task, in the order in which somebody would look for what is missing. */
interface Candidates {
  wanted: readonly string[];
  engine: string;
  labelled: KnownRunner[];
  allowed: KnownRunner[];
  able: KnownRunner[];
  online: ReadonlyMap<string, KnownRunner>;
}

/** One look at the runners. */
export class PlacementRound {
  readonly #options: PlacementOptions;
  readonly #runners: KnownRunner[];
  readonly #byName: ReadonlyMap<string, KnownRunner>;
  readonly #busy: Set<string>;
  /** How many runs each runner has. */
  readonly #runs = new Map<string, number>();
  readonly #heardAfter: number;
  readonly #free: Set<Poll>;
  /** The same by runner: of a home there is one among many. */
  readonly #freeOf: ReadonlyMap<string, Poll[]>;
  /** Most workers ask for the same as others. */
  readonly #candidates = new Map<string, Candidates>();
  /** Whether a claim that comes could get a task that found none. */
  #unplaced = false;

  constructor(options: PlacementOptions, runners: RunnerRow[], busy: readonly BusyPlace[], now: number) {
    this.#options = options;
    this.#runners = known(runners);
    this.#byName = new Map(this.#runners.map((runner) => [runner.row.name, runner]));
    this.#busy = new Set(busy.map(({ runner_id, work_dir }) => laneOn(runner_id, work_dir)));
    for (const { runner_id } of busy) this.#count(runner_id);
    this.#heardAfter = now - RUNNER_SILENT_MS;
    const { free } = options.polls;
    // A runner whose claims take many gets one of those that may go anywhere before it gets the next.
    this.#free = new Set(free.toSorted((a, b) => a.nth - b.nth));
    this.#freeOf = Map.groupBy(free, ({ runner }) => runner.id);
  }

  /** Where this task could start. */
  placeOf(task: WaitingTask): Place {
    if (task.gated === 1) return { kind: "hold", hold: GATED };
    const candidates = this.#candidatesFor(task);
    const { online, engine } = candidates;
    if (online.size === 0) {
      this.#unplaced = true;
      return { kind: "hold", hold: holdOf(task, candidates) };
    }
    const withoutRoom = new Set<string>();
    for (const poll of this.#pollsOf(online)) {
      const known = online.get(poll.runner.id);
      if (!this.#free.has(poll) || known?.row.epoch !== poll.runner.epoch) continue;
      if (withoutRoom.has(poll.runner.id)) continue;
      if (poll.nth > 0 && !(known.inside.has(engine) && task.bytes <= SHORT_RUN_MAX_BYTES)) continue;
      const workDir = this.#roomOn(known.row, task);
      if (workDir !== null) return { kind: "spot", spot: { poll, workDir } };
      withoutRoom.add(poll.runner.id);
    }
    this.#unplaced ||= this.#lacksClaim(task, online, withoutRoom);
    return { kind: "later" };
  }

  // Where there is no room either, the end of a run makes some, and wakes the dispatcher.
  #lacksClaim(
    task: WaitingTask,
    online: ReadonlyMap<string, KnownRunner>,
    withoutRoom: ReadonlySet<string>,
  ): boolean {
    const [only] = online.values();
    // One that has no home could go to a runner that comes.
    if (task.home === "" || online.size > 1 || only === undefined) return true;
    return !withoutRoom.has(only.row.id) && this.#roomOn(only.row, task) !== null;
  }

  // The directory there in which it runs; null while the runner has no slot, or the directory has a run.
  #roomOn(runner: RunnerRow, task: WaitingTask): string | null {
    if ((this.#runs.get(runner.id) ?? 0) >= runner.max_runs) return null;
    // A directory that the service chose is below the runner's own.
    const own = task.work_dir === join(this.#options.paths.workers, task.worker_id);
    const workDir = own ? join(runner.work_root, "workers", task.worker_id) : task.work_dir;
    return this.#busy.has(laneOn(runner.id, workDir)) ? null : workDir;
  }

  // The longest waiting first.
  #pollsOf(online: ReadonlyMap<string, KnownRunner>): Iterable<Poll> {
    const [only] = online.keys();
    return online.size === 1 && only !== undefined ? this.#freeOf.get(only) ?? [] : this.#free;
  }

  #candidatesFor(task: WaitingTask): Candidates {
    const { engines } = this.#options;
    const engine = engines.find(task.engine)?.name ?? task.engine;
    const key = JSON.stringify([task.home, task.runs_on, task.admin, engine]);
    const before = this.#candidates.get(key);
    if (before !== undefined) return before;
    const wanted = JSON.parse(task.runs_on) as string[];
    const home = this.#byName.get(task.home);
    const labelled = task.home === ""
      ? this.#runners.filter(({ labels }) => wanted.every((one) => labels.has(one)))
      : home === undefined
      ? []
      : [home];
    const allowed = labelled.filter(({ row }) => task.admin === 0 || row.allow_admin === 1);
    const able = allowed.filter((one) => one.engines.has(engine));
    const online = new Map(
      able.flatMap((one) => this.#isOnline(one.row) ? [[one.row.id, one] as const] : []),
    );
    const found = { wanted, engine, labelled, allowed, able, online };
    this.#candidates.set(key, found);
    return found;
  }

  /** It gets a task: in this round it gets no other. */
  take({ poll, workDir }: Spot): void {
    this.#free.delete(poll);
    this.#busy.add(laneOn(poll.runner.id, workDir));
    this.#count(poll.runner.id);
  }

  #count(runnerId: string): void {
    this.#runs.set(runnerId, (this.#runs.get(runnerId) ?? 0) + 1);
  }

  /** All tasks were looked at: a claim that comes later wakes the dispatcher if some found none. */
  done(): void {
    this.#options.polls.unplaced = this.#unplaced;
  }

  #isOnline({ draining, last_seen_at }: RunnerRow): boolean {
    return draining === 0 && (last_seen_at ?? 0) > this.#heardAfter;
  }
}

const GATED: Hold = {
  held: "runner:gate",
  until: null,
  reason:
    "a gate runs on the service's own machine only, and its worker runs on runners; take one of both away",
  whom: { kind: "all" },
};

function laneOn(runnerId: string, workDir: string): string {
  return `${runnerId}\0${workDir}`;
}

/** What is missing, in the order in which somebody would look for it. */
function holdOf(
  { home, runs_on }: WaitingTask,
  { wanted, engine, labelled, allowed, able }: Candidates,
): Hold {
  const who = home === "" ? `runner with the labels ${wanted.join(", ")}` : `runner ${home}`;
  const only = labelled.length === 1 || home !== "";
  const reason = labelled.length === 0
    ? home === ""
      ? `no ${who} is known`
      : `its home, the ${who}, was removed; svc ctl worker rehome gives it another`
    : allowed.length === 0
    ? `no ${who} may run a worker that holds *:*; such a runner is added with --allow-admin`
    : able.length === 0
    ? `no ${who} has the engine ${engine}`
    : able.some(({ row }) => row.draining === 1)
    ? `${only ? `the runner ${able[0]?.row.name} is` : `every ${who} is`} draining or silent`
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
