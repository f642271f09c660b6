// stored -> starting -> launched -> ended, and claimed -> ended: starts, watches and ends the jobs of launchers (contract 33).
import { createLogger } from "../../base/log.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { settleAll } from "../../base/settle_all.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { formatLaunchWait } from "../../domain/work/launch.ts";
import type { LauncherConfig, Launchers } from "../../domain/workers/launcher.ts";
import {
  cancelClaimed,
  deleteLaunchRunners,
  endLaunch,
  hasLaunchRunners,
  type LeftJob,
  listLeftJobs,
  listOpenLaunches,
  noteLaunch,
  type OpenLaunch,
  recordLaunchProblem,
  startLaunch,
  storeCancel,
  storeJobState,
  storeStarted,
  storeStartProblem,
} from "../../store/workers/launch.ts";
import { listLauncherRows, storeFailedStart } from "../../store/workers/launcher.ts";
import { Stage, type StageServices, waitBriefly } from "../stage/stage.ts";
import type { LaunchCommands } from "./launch_commands.ts";

const log = createLogger("launches");

interface LaunchesOptions extends StageServices {
  launchers: Launchers;
  commands: LaunchCommands;
  /** Drops what is cached of the runner of a launch, and ends its claim request. */
  endRunner: (launchId: string) => void;
}

/** Commands at a time: starts and cancels together, and state commands. */
const LAUNCHER_COMMANDS_MAX = 4;
const STATE_EVERY_MS = 5_000;
const CANCELS_MAX = 3;
const CANCEL_RETRY_MS = [5_000, 30_000];
// A runner ends a run within its stop grace after a beat, which comes every ten seconds.
const STOP_MAX_MS = 60_000;
// A runner that lost the answer to its last report repeats it this long.
const RUNNER_KEPT_MS = 60_000;
// Without launchers, only rows of a launcher that was removed from the configuration need this stage.
const IDLE_POLL_MS = 30_000;

export class Launches {
  readonly stage: Stage;
  readonly #options: LaunchesOptions;
  /** Starts and cancels in progress, by launch. */
  readonly #commands = new Map<string, Promise<void>>();
  readonly #questions = new Map<string, Promise<void>>();
  /** Time of the last state command, by launch. */
  readonly #askedAt = new Map<string, number>();

  constructor(options: LaunchesOptions) {
    this.#options = options;
    const isUsed = Object.keys(options.launchers).length > 0;
    this.stage = new Stage(options, {
      name: "launches",
      wakeup: WAKEUP.launches,
      ...(isUsed ? {} : { pollMs: IDLE_POLL_MS }),
      step: () => this.#step(),
    });
  }

  /** Waits briefly for commands, and ends the others. The next start treats their launches as started. */
  async stop(): Promise<void> {
    const running = [...this.#commands.values(), ...this.#questions.values()];
    await waitBriefly(running);
    this.#options.commands.stop();
    await settleAll(running);
  }

  async #step(): Promise<number> {
    const { db, clock } = this.#options;
    const [open, left] = await Promise.all([listOpenLaunches(db), listLeftJobs(db)]);
    for (const launch of open) await this.#advance(launch, clock.now());
    for (const job of left) if (job.cancel_at <= clock.now()) this.#cancel(job);
    const ids = new Set(open.map(({ id }) => id));
    for (const id of this.#askedAt.keys()) if (!ids.has(id)) this.#askedAt.delete(id);
    if (await hasLaunchRunners(db)) await db.write([deleteLaunchRunners(clock.now() - RUNNER_KEPT_MS)]);
    const due = [...open.map(({ deadline_at }) => deadline_at), ...left.map(({ cancel_at }) => cancel_at)];
    return Math.max(0, Math.min(...due.filter((at) => at > clock.now())) - clock.now());
  }

  async #advance(launch: OpenLaunch, now: number): Promise<void> {
    const config = this.#options.launchers[launch.launcher];
    const { state, run_ended, reported } = launch;
    const mayExist = state !== "stored";
    if (state === "claimed") {
      if (run_ended === 1) {
        return await this.#end(launch, { cancels: reported === 0, keepsRunner: reported === 1 });
      }
      const isStuck = launch.stopped_at !== null && launch.stopped_at <= now - STOP_MAX_MS;
      if (isStuck) await this.#options.db.write([cancelClaimed(launch.id, now)]);
      return;
    }
    if (launch.deadline_at === 0) return await this.#endLate(launch);
    if (launch.waits === 0) {
      return await this.#end(launch, { reason: "its task no longer waits", cancels: mayExist });
    }
    if (config === undefined) {
      return await this.#end(launch, { reason: "its launcher is no longer configured", cancels: mayExist });
    }
    if (launch.deadline_at <= now) return await this.#endLate(launch);
    if (state === "stored") return await this.#start(launch, config, now);
    if (state === "starting") await this.#explainStart(launch, now + config.start_timeout);
    if (state === "launched" && launch.job !== "" && config.state !== undefined) this.#ask(launch, config);
    await this.#note(launch, now);
  }

  // A job that came and could not have the run is no failed start of its launcher.
  async #endLate(launch: OpenLaunch): Promise<void> {
    const { state, job, seen_at } = launch;
    const what = job === "" ? "its job" : `job ${job}`;
    if (state === "stored") {
      return await this.#end(launch, { reason: "it was not started in time", cancels: false });
    }
    const isRejected = launch.deadline_at === 0;
    const reason = isRejected
      ? launch.reason
      : seen_at === null
      ? `${what} started no runner in time${launch.reason === "" ? "" : `: ${launch.reason}`}`
      : `${what} came, but the task could not start`;
    await this.#end(launch, { reason, cancels: true, failed: !isRejected && seen_at === null });
  }

  // After a restart it is unknown whether the command has run.
  async #explainStart({ id, reason }: OpenLaunch, deadlineAt: number): Promise<void> {
    if (this.#commands.has(id) || reason !== "") return;
    const words = "the service stopped while the command ran, which may have started a job";
    await this.#options.db.write([storeStartProblem(id, words, deadlineAt)]);
  }

  async #note(launch: OpenLaunch, now: number): Promise<void> {
    const reason = formatLaunchWait(launch);
    if (launch.task_reason !== reason) await this.#options.db.write([noteLaunch(launch, reason, now)]);
  }

  async #start(launch: OpenLaunch, config: LauncherConfig, now: number): Promise<void> {
    if (!canAdd(this.#commands, launch.id)) {
      return await this.#note(launch, now);
    }
    const row = (await listLauncherRows(this.#options.db)).find(({ name }) => name === launch.launcher);
    if (row !== undefined && (row.paused_at !== null || (row.retry_at ?? 0) > now)) {
      return await this.#end(launch, { reason: "its launcher waits after a failed start", cancels: false });
    }
    this.#run(this.#commands, launch.id, () => this.#runStart(launch, config));
  }

  async #runStart(launch: OpenLaunch, config: LauncherConfig): Promise<void> {
    const { db, clock, commands } = this.#options;
    const { id, created_at } = launch;
    const order = await commands.prepare(launch);
    const { won } = await db.write([
      ...startLaunch(id, clock.now() + commands.timeoutMs + config.start_timeout),
      noteLaunch(launch, formatLaunchWait({ ...launch, state: "starting" }), clock.now()),
    ]);
    if (!won) return;
    faultPoint("launch.starting");
    const result = await commands.run(config.command, order);
    faultPoint("launch.printed");
    const now = clock.now();
    const starting = { ...launch, state: "starting" as const };
    switch (result.kind) {
      case "done": {
        const job = result.job;
        const watched = job !== "" && config.state !== undefined;
        const deadlineAt = watched ? created_at + config.launch_expires : now + config.start_timeout;
        const reason = formatLaunchWait({ ...starting, state: "launched", job });
        await db.write([
          ...storeStarted(launch, { job, reason: "", deadlineAt }, now),
          noteLaunch(launch, reason, now),
        ]);
        faultPoint("launch.launched");
        return;
      }
      case "failed":
        log.warning("The launcher {launcher} failed: {reason}", {
          launcher: launch.launcher,
          reason: result.reason,
        });
        return await this.#end(starting, { reason: result.reason, cancels: false, failed: true });
      case "unknown":
        await db.write([storeStartProblem(id, result.reason, now + config.start_timeout)]);
    }
  }

  // The state command has no effect but the shown state, and the deadline when its word changes, unless the job has ended.
  #ask(launch: OpenLaunch, config: LauncherConfig): void {
    const { db, clock, commands } = this.#options;
    const { id, job, job_state, created_at, deadline_at } = launch;
    const now = clock.now();
    if (!canAdd(this.#questions, id)) return;
    if (now - (this.#askedAt.get(id) ?? -Infinity) < STATE_EVERY_MS) return;
    this.#askedAt.set(id, now);
    this.#run(this.#questions, id, async () => {
      const state = await commands.askState(config.state ?? [], launch);
      const [word] = state.split(/\s/);
      if (word === "ended") {
        const reason = `job ${job} ended before it started a runner`;
        return await this.#end(launch, { reason, cancels: false, failed: true });
      }
      if (state === job_state) return;
      const isNew = word !== job_state.split(/\s/)[0];
      const deadlineAt = isNew && word === "running"
        ? clock.now() + config.start_timeout
        : isNew && word === "pending"
        ? created_at + config.launch_expires
        : deadline_at;
      await db.write([storeJobState(id, state, deadlineAt)]);
    });
  }

  #cancel(job: LeftJob): void {
    const { db, clock, launchers, commands } = this.#options;
    if (!canAdd(this.#commands, job.id)) return;
    const config = launchers[job.launcher];
    const argv = config?.cancel;
    this.#run(this.#commands, job.id, async () => {
      if (config === undefined) return await this.#leaveJob(job);
      const failure = argv === undefined ? null : await commands.cancel(argv, job);
      const retryMs = failure === null || job.cancels + 1 >= CANCELS_MAX
        ? null
        : CANCEL_RETRY_MS[job.cancels] ?? null;
      const now = clock.now();
      const detail = `the cancel command of the launcher ${job.launcher} failed ${CANCELS_MAX} times for ${
        formatJob(job)
      }, which may still exist: ${failure}`;
      await db.write([
        storeCancel(job, retryMs === null ? null : now + retryMs),
        ...(failure !== null && retryMs === null ? [recordLaunchProblem(job, detail, now)] : []),
      ]);
    });
  }

  // No command can end the job, so a person has to look for it.
  async #leaveJob(job: LeftJob): Promise<void> {
    const detail = `the launcher ${job.launcher} is no longer configured, so nothing has canceled ${
      formatJob(job)
    }, which may still exist`;
    await this.#options.db.write([
      storeCancel(job, null),
      recordLaunchProblem(job, detail, this.#options.clock.now()),
    ]);
  }

  async #end(
    launch: OpenLaunch,
    end: { reason?: string; cancels: boolean; keepsRunner?: boolean; failed?: boolean },
  ): Promise<void> {
    const { db, clock, commands, endRunner } = this.#options;
    const { reason = "", failed = false } = end;
    const now = clock.now();
    const row = (await listLauncherRows(db)).find(({ name }) => name === launch.launcher);
    const { won } = await db.write([
      ...endLaunch(launch, { ...end, reason }, now),
      ...(failed ? storeFailedStart(launch.launcher, row, reason, now) : []),
    ]);
    // The runner has claimed the run meanwhile.
    if (!won) return;
    faultPoint("launch.ended");
    endRunner(launch.id);
    await commands.clean(launch.id);
  }

  #run(pool: Map<string, Promise<void>>, id: string, work: () => Promise<void>): void {
    const done = work().catch((error) => log.error("A command of a launcher failed: {error}", { error }))
      .finally(() => {
        pool.delete(id);
        this.stage.wake();
      });
    pool.set(id, done);
  }
}

function formatJob({ job, id }: LeftJob): string {
  return job === "" ? `the job of the launch ${id}` : `job ${job}`;
}

function canAdd(pool: ReadonlyMap<string, unknown>, id: string): boolean {
  return !pool.has(id) && pool.size < LAUNCHER_COMMANDS_MAX;
}
