// Runs one execution on this runner and reports it to the service.
import { basename, dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { openDirectory, type Place } from "../base/files/open_directory.ts";
import { removeTree } from "../base/files/tree_removal.ts";
import { createLogger } from "../base/log.ts";
import type { DataPaths } from "../base/paths.ts";
import { getEventsPath, getLogPath, getMirrorDir } from "../base/paths.ts";
import type { RunEnd, WireOrder } from "../domain/workers/runner.ts";
import type { RunnerConfig } from "../config/runner.ts";
import { resolveRemoteBox } from "../domain/workers/isolation.ts";
import type { Catalog } from "../engine/catalog.ts";
import { buildFailedOutcome, type Engine } from "../engine/engine.ts";
import type { EngineRunOptions } from "../run/local/engine_run.ts";
import { type BoxMachine, type BoxPlanner, type BoxWish, createBoxPlanner } from "../run/box.ts";
import { type BoxUser, giveFile } from "../engine/process/box.ts";
import { createEnvironmentBuilder, type EnvironmentBuilder } from "../run/environment.ts";
import { createSentResolver, SetupError } from "../run/variables.ts";
import { addCost } from "../domain/work/execution.ts";
import type { RunOutcome } from "../run/recorder.ts";
import type { Interruption } from "../domain/work/interruption.ts";
import { findBoxUser } from "../engine/process/box_user.ts";
import { openSentWorkspace } from "../run/local/sent_workspace.ts";
import type { Workspace } from "../run/local/workspaces.ts";
import { runWorker } from "../run/local/worker_run.ts";
import type { Lease } from "./lease.ts";
import { type OrphanRuns, resolveFiles } from "./orphan_runs.ts";
import { RefusedError, type ServiceClient } from "./service_client.ts";
import { downloadBranch, uploadCommits } from "./repo_transfer.ts";
import { LogSender } from "./log_sender.ts";
import { ReportSender } from "./report_sender.ts";

const log = createLogger("runner");

const END_TIMEOUT_MS = 30_000;
// The service refuses fields that are not in its schema.
const { engineUse: _unsent, ...REFUSED } = buildFailedOutcome(
  "engine_error",
  "The service refused the outcome that the runner sent. See the runner's log",
);

const NO_CHECK = buildFailedOutcome(
  "isolation",
  "Cannot start: a check cannot run in a box with an engine that is no program",
);

export interface RemoteRunOptions extends Omit<EngineRunOptions, "environmentOf" | "planBox" | "config"> {
  config: Pick<RunnerConfig, "limits" | "isolation">;
  boxMachine: BoxMachine;
  link: ServiceClient;
  clock: Clock;
  paths: DataPaths;
  engines: Catalog;
  leftovers: OrphanRuns;
  /** The runner does only this run. */
  once: boolean;
}

export class RemoteRun {
  readonly order: WireOrder;
  readonly lease: Lease;
  /** How long the run has waited for a person, as last reported by the service. */
  waitedMs = 0;
  readonly #options: RemoteRunOptions;
  readonly #epoch: number;
  readonly #engine: Engine | null;
  readonly #lost = new AbortController();
  readonly #reports: ReportSender;
  readonly #log: LogSender;
  readonly #events: LogSender | null;
  #startedAt: number | null = null;
  #isReported = false;

  constructor(
    options: RemoteRunOptions,
    order: WireOrder,
    { epoch, lease }: { epoch: number; lease: Lease },
  ) {
    const { link, paths, engines } = options;
    const { execution_id: executionId, engine } = order.execution;
    const { signal } = this.#lost;
    const sending = { link, executionId, epoch, signal };
    this.order = order;
    this.lease = lease;
    this.#options = options;
    this.#epoch = epoch;
    this.#reports = new ReportSender(sending);
    this.#log = new LogSender({
      ...sending,
      kind: "log",
      path: getLogPath(paths, executionId),
      isPrompt: options.once,
    });
    this.#engine = order.gateway === null
      ? engines.find(engine)
      : engines.buildThrough(engine, order.gateway);
    const events = { ...sending, kind: "events" as const, path: getEventsPath(paths, executionId) };
    this.#events = this.#engine?.agent === true ? new LogSender(events) : null;
  }

  get id(): string {
    return this.order.execution.execution_id;
  }

  /** Whether the runner has lost this run. */
  get isLost(): boolean {
    return this.#lost.signal.aborted;
  }

  /** Whether the service has stored the end of this run. */
  get isReported(): boolean {
    return this.#isReported;
  }

  /** Stops all reports, because the runner has lost this run. */
  markLost(): void {
    this.#lost.abort();
  }

  /** Runs the order to its outcome. Throws when its files cannot be downloaded. */
  async run(signal: AbortSignal): Promise<RunOutcome> {
    if (this.order.files.length === 0) return await this.#run(signal);
    const { paths } = this.#options;
    const folder = resolveFiles(paths, this.id);
    const place = { root: paths.root, path: folder };
    try {
      await this.#fetchFiles(place, signal);
      return await this.#run(signal);
    } finally {
      await removeTree(place).catch((error) => {
        log.warning("Cannot remove {folder}: {error}", { folder, error });
      });
    }
  }

  async #fetchFiles(place: Place, signal: AbortSignal): Promise<void> {
    const { files } = this.order;
    await removeTree(place);
    // Held open: another run cannot redirect the download.
    using folder = openDirectory(place, 0o700);
    for (const name of new Set(files.map((file) => basename(file)))) {
      const from = `/api/runs/${this.id}/media/${encodeURIComponent(name)}`;
      await this.#options.link.download(from, { path: join(folder.address, name), signal });
    }
  }

  async #run(signal: AbortSignal): Promise<RunOutcome> {
    const { execution, work_dir: workDir, verify, mcp, briefing, grant, max_log_bytes } = this.order;
    const { config: { limits } } = this.#options;
    const isProgram = this.#engine?.external === true;
    if (this.#boxWish !== null && verify !== null && !isProgram) return NO_CHECK;
    const options = {
      ...this.#options,
      isRunner: true,
      engines: { find: () => this.#engine },
      config: { limits: { ...limits, max_log_bytes } },
      environmentOf: this.#createEnvironmentBuilder(),
      planBox: this.#createBoxPlanner(),
    };
    const workspace = await this.#openWorkspace(signal);
    if (workspace instanceof SetupError) return buildFailedOutcome("setup", workspace.message);
    return await runWorker(options, {
      ...{ execution, workDir, workspace, verify, mcp: mcp.servers },
      grant: () => Promise.resolve(grant),
      brief: () => Promise.resolve(briefing),
      signal,
      listen: (engine) => ({
        onWrite: () => {
          this.#log.send();
          this.#events?.send();
        },
        waitedMs: () => this.waitedMs,
        onStart: (pid) => this.#onStart(pid),
        onStep: (words) => this.#reports.add({ kind: "step", words: words.slice(0, 500) }),
        onSession: ({ id, usage }) => this.#reports.add({ kind: "session", id, usage }),
        onUsage: (usage) => this.#reports.add({ kind: "usage", usage: addCost(usage, engine.config.prices) }),
        // The words of people become a task at the end of the run.
        steering: null,
        // The windows of the runner's own login limit nothing at the service.
        onWindows: () => {},
      }),
    });
  }

  async #openWorkspace(signal: AbortSignal): Promise<Workspace | SetupError | null> {
    const { link, paths, umask, config: { isolation } } = this.#options;
    // A service of an earlier version sends no `repo`.
    const { repo = null, execution, work_dir: workDir } = this.order;
    if (repo === null) return null;
    const isOwned = this.#boxWish !== null && Deno.uid() === 0 && isolation.box.user !== "";
    const { instruction, execution_id: executionId } = execution;
    const transfer = { link, executionId, epoch: this.#epoch };
    try {
      return await openSentWorkspace({
        ...{ executionId, instruction, workDir, umask, ...repo },
        mirror: getMirrorDir(paths, executionId),
        owner: isOwned ? await findBoxUser(isolation.box.user) : null,
        download: (path) => downloadBranch({ ...transfer, signal }, path),
        // The run may have been ended. Its changes still count, unless the runner has lost it.
        upload: (path) => uploadCommits({ ...transfer, signal: this.#lost.signal }, path),
      });
    } catch (error) {
      if (error instanceof SetupError) return error;
      throw error;
    }
  }

  get #boxWish(): BoxWish | null {
    const { config, paths } = this.#options;
    const { isolation, files } = this.order;
    const found = resolveRemoteBox(isolation, config.isolation);
    if (found === null) return null;
    return {
      ...found,
      others: isolation.hidden,
      read: files.length === 0 ? [] : [resolveFiles(paths, this.id)],
    };
  }

  #createBoxPlanner(): BoxPlanner {
    const wish = this.#boxWish;
    const plan = createBoxPlanner(this.#options.boxMachine, () => Promise.resolve(wish));
    return async (request) => {
      const box = await plan(request);
      for (const folder of wish?.read ?? []) if (box?.user) giveFolder(folder, box.user);
      return box;
    };
  }

  // The service sends the token, because a runner has no key to sign one.
  #createEnvironmentBuilder(): EnvironmentBuilder {
    const { paths, link } = this.#options;
    const { token, time_zone: timeZone } = this.order;
    return createEnvironmentBuilder({
      paths,
      tokenOf: () => Promise.resolve(token),
      timeZone,
      url: () => link.url,
      resolveVariables: createSentResolver(this.order),
      inherited: Deno.env.toObject(),
    });
  }

  #onStart(pid?: number): void {
    if (pid !== undefined) this.#options.leftovers.recordProcess(this.id, pid);
    if (this.#startedAt !== null) return;
    this.#startedAt = this.#options.clock.monotonic();
    this.#reports.add({ kind: "started" });
  }

  /**
   * Reports the end after the log and all reports. Resolves when the end is stored, or the service does not want it. Throws when it must
   * be retried.
   */
  async reportEnd(outcome: RunOutcome, interruption: Interruption | null): Promise<void> {
    const { link, clock } = this.#options;
    const { signal } = this.#lost;
    await Promise.all([this.#reports.flush(), this.#events?.flush(), this.#log.flush()]);
    if (signal.aborted) return;
    // Runners never replace an engine.
    const { engineUse: _use, ...reported } = outcome;
    const end: RunEnd = {
      epoch: this.#epoch,
      ran_ms: this.#startedAt === null ? null : Math.max(0, clock.monotonic() - this.#startedAt),
      interruption,
      outcome: { ...reported, usage: addCost(outcome.usage, this.#engine?.config.prices) },
    };
    // An outcome that the service rejects is reported as a failure. Without any end the run would stay open (contract 18.6).
    if (await this.#sendEnd(link, end) || signal.aborted) return;
    await this.#sendEnd(link, { ...end, outcome: REFUSED });
  }

  /** Returns whether this end is final: stored, or no longer wanted. Throws when it must be retried. */
  async #sendEnd(link: ServiceClient, end: RunEnd): Promise<boolean> {
    const { signal } = this.#lost;
    try {
      await link.post(`/api/runs/${this.id}/end`, end, { timeoutMs: END_TIMEOUT_MS, signal, ofRun: true });
      this.#isReported = true;
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (!(error instanceof RefusedError)) throw error;
      log.warning("The service refuses the end of run {id}: {error}", { id: this.id, error: error.message });
      return error.final;
    }
  }
}

/** Gives a folder of downloaded files to the user of a box. */
function giveFolder(folder: string, user: BoxUser): void {
  const root = dirname(folder);
  for (const { name } of Deno.readDirSync(folder)) giveFile({ root, path: join(folder, name) }, user);
  giveFile({ root, path: folder }, user);
}
