// Decides which launcher starts a runner for a task (contract 33).
import { createId } from "../../base/id.ts";
import { type Launchers, START_RETRY } from "../../domain/workers/launcher.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import { type Database, isDuplicate } from "../../store/db/database.ts";
import { listLaunchedTasks, type WaitingTask } from "../../store/work/task_queue.ts";
import { formatLaunchWait } from "../../domain/work/launch.ts";
import {
  insertLaunch,
  listOpenLaunches,
  listRefusals,
  noteLaunch,
  type OpenLaunch,
  type Refusal,
} from "../../store/workers/launch.ts";
import { type LauncherRow, listLauncherRows } from "../../store/workers/launcher.ts";

/** A launcher for a task, a launcher at its `max`, or why no launcher can start a runner. */
type LauncherChoice =
  | { kind: "launch"; launcher: string }
  | { kind: "later"; reason: string }
  | { kind: "block"; reason: string; until: number | null; waitsFor: string | null };

/** How long a launcher remembers which workers its runners refused. It waits at most the longest pause between two refusals. */
const REFUSALS_KEPT_MS = 6 * START_RETRY.lastMs;

export class Launching {
  readonly #db: Database;
  readonly #launchers: Launchers;

  constructor(db: Database, launchers: Launchers) {
    this.#db = db;
    this.#launchers = launchers;
  }

  get hasLaunchers(): boolean {
    return Object.keys(this.#launchers).length > 0;
  }

  get emptyRound(): LaunchingRound {
    return new LaunchingRound({}, { open: [], rows: [], refusals: [] }, 0);
  }

  /** Lists the waiting tasks of launches whose runners claim. */
  async listTasks(launchIds: readonly string[]): Promise<WaitingTask[]> {
    return launchIds.length === 0 ? [] : await listLaunchedTasks(this.#db, launchIds);
  }

  async startRound(now: number): Promise<LaunchingRound> {
    if (!this.hasLaunchers) return this.emptyRound;
    const [open, rows, refusals] = await Promise.all([
      listOpenLaunches(this.#db),
      listLauncherRows(this.#db),
      listRefusals(this.#db, now - REFUSALS_KEPT_MS),
    ]);
    return new LaunchingRound(this.#launchers, { open, rows, refusals }, now);
  }

  /** Stores a launch of this task, unless it no longer waits or has one. */
  async store(task: WaitingTask, launcher: string, now: number): Promise<void> {
    const config = this.#launchers[launcher];
    if (config === undefined) return;
    const { id: task_id, worker_id, session_key, runs_on } = task;
    const launch = {
      ...{ id: createId(), task_id, worker_id, session_key, launcher },
      ...{ labels: JSON.parse(runs_on) as string[], allow_admin: config.allow_admin, max: config.max },
      deadline_at: now + config.launch_expires,
    };
    const reason = formatLaunchWait({ launcher, state: "stored", job: "", job_state: "", reason: "" });
    try {
      await this.#db.write([...insertLaunch(launch, now), noteLaunch(launch, reason, now)]);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
  }
}

/** The state of the launchers at the start of a round. */
interface LauncherLoad {
  open: readonly OpenLaunch[];
  rows: readonly LauncherRow[];
  refusals: readonly Refusal[];
}

/** Chooses launchers in one round of the dispatcher. */
export class LaunchingRound {
  /** Open launches, by task. */
  readonly launches: ReadonlyMap<string, OpenLaunch>;
  readonly #launchers: Launchers;
  readonly #rows: ReadonlyMap<string, LauncherRow>;
  /** Number of open launches, by launcher. */
  readonly #open = new Map<string, number>();
  /** Refusals by worker and launcher, the oldest first. */
  readonly #refusals = new Map<string, Refusal[]>();
  /** Workers and launchers with a launch that has no run. */
  readonly #launching = new Set<string>();
  readonly #now: number;

  constructor(launchers: Launchers, { open, rows, refusals }: LauncherLoad, now: number) {
    this.#launchers = launchers;
    this.#rows = new Map(rows.map((row) => [row.name, row]));
    this.#now = now;
    this.launches = new Map(open.map((launch) => [launch.task_id, launch]));
    for (const { launcher, worker_id, state } of open) {
      this.#count(launcher);
      if (state !== "claimed") this.#launching.add(buildKey(worker_id, launcher));
    }
    for (const refusal of refusals) {
      const key = buildKey(refusal.worker_id, refusal.launcher);
      this.#refusals.set(key, [...this.#refusals.get(key) ?? [], refusal]);
    }
  }

  /** Counts a launch of a worker. */
  take(launcher: string, workerId: string): void {
    this.#count(launcher);
    this.#launching.add(buildKey(workerId, launcher));
  }

  #count(launcher: string): void {
    this.#open.set(launcher, this.#countOpen(launcher) + 1);
  }

  #countOpen(launcher: string): number {
    return this.#open.get(launcher) ?? 0;
  }

  /** Chooses the first launcher below its `max`, in the order of the configuration. null: no launcher has the labels. */
  choose(task: WaitingTask, wanted: readonly string[]): LauncherChoice | null {
    const matching = Object.entries(this.#launchers).filter(([, { labels }]) =>
      wanted.every((label) => labels.includes(label))
    );
    const [first] = matching;
    // A worker with a home runs on that runner only.
    if (first === undefined || task.home !== "" && task.home !== NO_HOME) return null;
    const block = (reason: string) => ({ kind: "block" as const, reason, until: null, waitsFor: null });
    const fault = findTaskFault(task);
    if (fault !== null) return block(`the launcher ${first[0]} cannot start one: ${fault}`);
    const allowed = matching.filter(([, { allow_admin }]) => task.admin === 0 || allow_admin);
    if (allowed.length === 0) {
      return block(
        `the launcher ${first[0]} may not run a worker that holds *:*. Set its allow_admin in config.yaml`,
      );
    }
    const ready = allowed.filter(([name]) => this.#findWait(name, task.worker_id) === null);
    const free = ready.find(([name, { max }]) => this.#countOpen(name) < max);
    if (free !== undefined) return { kind: "launch", launcher: free[0] };
    const [full] = ready;
    if (full !== undefined) {
      const [name, { max }] = full;
      return {
        kind: "later",
        reason: `waits for the launcher ${name}, which has ${max} of ${max} launches open`,
      };
    }
    const waitsFor = allowed[0]?.[0] ?? "";
    const wait = this.#findWait(waitsFor, task.worker_id);
    return { kind: "block", reason: wait?.reason ?? "", until: wait?.until ?? null, waitsFor };
  }

  /** Returns why a launcher starts nothing for this worker now, or null. */
  #findWait(launcher: string, workerId: string): LauncherWait | null {
    const row = this.#rows.get(launcher);
    const wait = row === undefined ? null : this.#findPause(launcher, row);
    return wait ?? this.#findRefusal(launcher, workerId);
  }

  // The pause doubles: it is as long as the time since the first refusal. After it, one launch shows whether the others can start.
  #findRefusal(launcher: string, workerId: string): LauncherWait | null {
    const key = buildKey(workerId, launcher);
    const refusals = this.#refusals.get(key) ?? [];
    const [first, last] = [refusals[0], refusals.at(-1)];
    if (first === undefined || last === undefined) return null;
    const { firstMs, lastMs } = START_RETRY;
    const until = last.ended_at + Math.min(Math.max(last.ended_at - first.ended_at, firstMs), lastMs);
    if (until <= this.#now && !this.#launching.has(key)) return null;
    return {
      reason: `the launcher ${launcher} tries again later for this worker: ${last.reason}`,
      until: until <= this.#now ? null : until,
    };
  }

  #findPause(launcher: string, row: LauncherRow): LauncherWait | null {
    const { paused_at, retry_at, failures, last_error } = row;
    if (paused_at !== null) {
      const resume = `Resume it with: svc ctl launcher resume ${launcher}`;
      return {
        reason:
          `the launcher ${launcher} is paused after ${failures} failed starts, the last one: ${last_error}. ${resume}`,
        until: null,
      };
    }
    if (retry_at === null || retry_at <= this.#now) return null;
    return {
      reason: `the launcher ${launcher} failed and tries again later: ${last_error}`,
      until: retry_at,
    };
  }
}

/** Why a launcher starts nothing now, and until when. null: unknown. */
interface LauncherWait {
  reason: string;
  until: number | null;
}

function buildKey(workerId: string, launcher: string): string {
  return `${workerId} ${launcher}`;
}

/** Returns why no launcher can start a runner for a task, with the way out, or null. */
export function findTaskFault({ home, has_repo, secret }: WaitingTask): string | null {
  if (home !== NO_HOME && has_repo === 0) {
    return "its worker keeps a directory. Set home none, or give it a repository";
  }
  return secret === 1
    ? "its worker names a secret in its variables, which only runners of runner add --secrets get. Remove it, or use a gateway"
    : null;
}
