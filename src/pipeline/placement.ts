// Which runner gets a task whose worker runs on another machine (contract 18)
import type { Clock } from "../base/clock.ts";
import { join } from "node:path";
import type { DataPaths } from "../base/paths.ts";
import type { Hold } from "../domain/hold.ts";
import { type LeaseTimes, RUNNER_SILENT_MS } from "../domain/runner.ts";
import type { Catalog } from "../engine/catalog.ts";
import type { Poll, Polls } from "../run/polls.ts";
import type { Database, Statement } from "../store/database.ts";
import type { NewExecution } from "../store/execution.ts";
import { type BusyPlace, insertLease, listBusyPlaces, setHome } from "../store/remote_run.ts";
import { listRunnerRows, type RunnerRow } from "../store/runner.ts";
import type { WaitingTask } from "../store/task_queue.ts";

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

  /** Whether a runner waits for a task. */
  get wanted(): boolean {
    return this.#options.polls.free.length > 0;
  }

  /** Looks at who is there, if one of these tasks needs a runner. */
  async round(tasks: readonly WaitingTask[], now: number): Promise<PlacementRound> {
    const { db } = this.#options;
    const needed = tasks.some(({ runs_on }) => runs_on !== "[]");
    // Who comes while this looks may have come too late for it.
    this.#options.polls.unplaced = true;
    if (!needed) return new PlacementRound(this.#options, [], [], now);
    const [runners, busy] = await Promise.all([listRunnerRows(db), listBusyPlaces(db)]);
    return new PlacementRound(
      this.#options,
      runners,
      busy,
      now,
    );
  }

  /** The statements that make a run that of a runner. Guarded by its being there still. */
  claimOf({ poll: { runner, claim }, workDir }: Spot): (execution: NewExecution) => Statement[] {
    const { clock, times } = this.#options;
    return ({ execution_id, worker_id }) => [
      ...insertLease({
        execution_id,
        runner_id: runner.id,
        request_id: claim.request_id,
        epoch: runner.epoch,
        work_dir: workDir,
        lease_until: clock.now() + times.lease_ms,
      }),
      ...setHome(worker_id, runner.name),
    ];
  }

  /** Whether the claim still waits: a run that is given to one that does not is lost. */
  isOpen({ poll }: Spot): boolean {
    return this.#options.polls.isOpen(poll);
  }

  /** Lets the claim wait until `giving` has written it, and look at its row then. */
  give(spot: Spot, giving: Promise<void>): Promise<void> {
    return this.#options.polls.give(spot.poll, giving);
  }
}

/** One look at the runners. */
export class PlacementRound {
  readonly #options: PlacementOptions;
  readonly #runners: RunnerRow[];
  readonly #busy: Set<string>;
  /** How many runs each runner has. */
  readonly #runs = new Map<string, number>();
  readonly #heardAfter: number;
  readonly #free: Poll[];
  #unplaced = false;

  constructor(options: PlacementOptions, runners: RunnerRow[], busy: readonly BusyPlace[], now: number) {
    this.#options = options;
    this.#runners = runners;
    this.#busy = new Set(busy.map(({ runner_id, work_dir }) => laneOn(runner_id, work_dir)));
    for (const { runner_id } of busy) this.#count(runner_id);
    this.#heardAfter = now - RUNNER_SILENT_MS;
    this.#free = options.polls.free;
  }

  /** Where this task could start. */
  placeOf(task: WaitingTask): Place {
    const { engines, paths } = this.#options;
    const wanted = JSON.parse(task.runs_on) as string[];
    if (task.gated === 1) return { kind: "hold", hold: GATED };
    const engine = engines.find(task.engine)?.name ?? task.engine;
    const labelled = this.#runners.filter(({ name, labels }) =>
      task.home === "" ? isWithin(wanted, JSON.parse(labels)) : name === task.home
    );
    const allowed = labelled.filter(({ allow_admin }) => task.admin === 0 || allow_admin === 1);
    const able = allowed.filter(({ engines: known }) =>
      (JSON.parse(known) as { name: string }[]).some(({ name }) => name === engine)
    );
    const online = able.filter((runner) => this.#isOnline(runner));
    this.#unplaced = true;
    if (online.length === 0) {
      return { kind: "hold", hold: holdOf(task, wanted, { engine, labelled, allowed, able }) };
    }
    const own = task.work_dir === join(paths.workers, task.worker_id);
    for (const poll of this.#free) {
      const runner = online.find(({ id, epoch }) => id === poll.runner.id && epoch === poll.runner.epoch);
      if (runner === undefined || (this.#runs.get(runner.id) ?? 0) >= runner.max_runs) continue;
      // A directory that the service chose is below the runner's own.
      const workDir = own ? join(runner.work_root, "workers", task.worker_id) : task.work_dir;
      if (!this.#busy.has(laneOn(runner.id, workDir))) return { kind: "spot", spot: { poll, workDir } };
    }
    return { kind: "later" };
  }

  /** It gets a task: in this round it gets no other. */
  take({ poll, workDir }: Spot): void {
    this.#free.splice(this.#free.indexOf(poll), 1);
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

function isWithin(wanted: readonly string[], labels: readonly string[]): boolean {
  return wanted.every((one) => labels.includes(one));
}

/** What is missing, in the order in which somebody would look for it. */
function holdOf(
  { home, runs_on }: WaitingTask,
  wanted: readonly string[],
  { engine, labelled, allowed, able }: {
    engine: string;
    labelled: RunnerRow[];
    allowed: RunnerRow[];
    able: RunnerRow[];
  },
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
