// One run of this runner: it is run as in the service, and everything about it is told to the service
import { basename, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import type { DataPaths } from "../base/paths.ts";
import { eventsPath, logPath } from "../base/paths.ts";
import type { RunEnd, WireOrder } from "../domain/workers/runner.ts";
import type { Catalog } from "../engine/catalog.ts";
import { failedOutcome } from "../engine/engine.ts";
import type { EngineRunOptions } from "../run/local/engine_run.ts";
import { createEnvironments, type EnvironmentOf } from "../run/environment.ts";
import { priced } from "../run/usage_recorder.ts";
import type { RunOutcome } from "../run/recorder.ts";
import type { Interruption } from "../domain/work/interruption.ts";
import { runWorker } from "../run/local/worker_run.ts";
import type { Lease } from "./lease.ts";
import { filesOf, type Leftovers } from "./orphan_runs.ts";
import { type Link, Refused } from "./service_client.ts";
import { LogSender } from "./log_sender.ts";
import { ReportSender } from "./report_sender.ts";

const log = logger("runner");

const END_TIMEOUT_MS = 30_000;
const REFUSED = failedOutcome(
  "engine_error",
  "The service refused the outcome that the runner sent; the runner's log tells why",
);

/** What every run of a runner needs. */
export interface RemoteRunOptions extends Omit<EngineRunOptions, "environmentOf"> {
  link: Link;
  clock: Clock;
  paths: DataPaths;
  engines: Catalog;
  leftovers: Leftovers;
}

/** A run, and what is known of it beside its order. */
export class RemoteRun {
  readonly order: WireOrder;
  readonly lease: Lease;
  /** How long it has waited for a person, as the service said last. */
  waitedMs = 0;
  readonly #options: RemoteRunOptions;
  readonly #epoch: number;
  readonly #gone = new AbortController();
  readonly #reports: ReportSender;
  readonly #log: LogSender;
  readonly #events: LogSender | null;
  #startedAt: number | null = null;

  constructor(
    options: RemoteRunOptions,
    order: WireOrder,
    { epoch, lease }: { epoch: number; lease: Lease },
  ) {
    const { link, paths, engines } = options;
    const { execution_id: executionId, engine } = order.execution;
    const { signal } = this.#gone;
    const sending = { link, executionId, epoch, signal };
    this.order = order;
    this.lease = lease;
    this.#options = options;
    this.#epoch = epoch;
    this.#reports = new ReportSender(sending);
    this.#log = new LogSender({ ...sending, kind: "log", path: logPath(paths, executionId) });
    const found = engines.find(engine);
    const events = { ...sending, kind: "events" as const, path: eventsPath(paths, executionId) };
    this.#events = found?.agent === true ? new LogSender(events) : null;
  }

  get id(): string {
    return this.order.execution.execution_id;
  }

  /** Whether it belongs to this runner no longer. */
  get disowned(): boolean {
    return this.#gone.signal.aborted;
  }

  /** It belongs to this runner no longer: nothing more is told. */
  disown(): void {
    this.#gone.abort();
  }

  /** Runs it to its outcome. Throws when its files do not come. */
  async run(signal: AbortSignal): Promise<RunOutcome> {
    if (this.order.files.length === 0) return await this.#run(signal);
    const folder = filesOf(this.#options.paths, this.id);
    try {
      await this.#fetchFiles(folder, signal);
      return await this.#run(signal);
    } finally {
      await Deno.remove(folder, { recursive: true }).catch(() => {});
    }
  }

  async #fetchFiles(folder: string, signal: AbortSignal): Promise<void> {
    const { files } = this.order;
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of new Set(files.map((file) => basename(file)))) {
      const from = `/api/runs/${this.id}/media/${encodeURIComponent(name)}`;
      await this.#options.link.download(from, { path: join(folder, name), signal });
    }
  }

  #run(signal: AbortSignal): Promise<RunOutcome> {
    const { execution, work_dir: workDir, verify, briefing, grant, max_log_bytes } = this.order;
    const { config: { limits } } = this.#options;
    const options = {
      ...this.#options,
      config: { limits: { ...limits, max_log_bytes } },
      environmentOf: this.#environmentOf(),
    };
    return runWorker(options, {
      ...{ execution, workDir, verify },
      grant: () => Promise.resolve(grant),
      brief: () => Promise.resolve(briefing),
    }, {
      signal,
      reports: {
        onWrite: () => this.#onWrite(),
        waitedMs: () => this.waitedMs,
        onStart: (_engine, pid) => this.#onStart(pid),
        onStep: (words) => this.#reports.add({ kind: "step", words: words.slice(0, 500) }),
        onSession: ({ id, usage }) => this.#reports.add({ kind: "session", id, usage }),
        onUsage: (usage, engine) =>
          this.#reports.add({ kind: "usage", usage: priced(usage, engine.config.prices) }),
        // They are those of the runner's own login, and hold nothing at the service.
        onWindows: () => {},
      },
    });
  }

  #onWrite(): void {
    this.#log.grew();
    this.#events?.grew();
  }

  // The token comes with the order: a runner has no key.
  #environmentOf(): EnvironmentOf {
    const { paths, link } = this.#options;
    const { token, time_zone: timeZone } = this.order;
    return createEnvironments({
      paths,
      tokenOf: () => Promise.resolve(token),
      timeZone,
      url: () => link.url,
      inherited: Deno.env.toObject(),
    });
  }

  #onStart(pid?: number): void {
    if (pid !== undefined) this.#options.leftovers.started(this.id, pid);
    if (this.#startedAt !== null) return;
    this.#startedAt = this.#options.clock.monotonic();
    this.#reports.add({ kind: "started" });
  }

  /** Tells how it ended, once its log and its reports are there. Returns when that is stored, or when nobody wants to know. Throws when it has to be tried again. */
  async tell(outcome: RunOutcome, interruption: Interruption | null): Promise<void> {
    const { link, clock, engines } = this.#options;
    const { signal } = this.#gone;
    await Promise.all([this.#reports.settled(), this.#events?.settled(), this.#log.settled()]);
    if (signal.aborted) return;
    const { execution: { engine } } = this.order;
    const end: RunEnd = {
      epoch: this.#epoch,
      ran_ms: this.#startedAt === null ? null : Math.max(0, clock.monotonic() - this.#startedAt),
      interruption,
      outcome: { ...outcome, usage: priced(outcome.usage, engines.find(engine)?.config.prices) },
    };
    // An outcome that the service cannot take is a failure with its own words: without any end the run would seem to go on (contract 18.6).
    if (await this.#accepted(link, end) || signal.aborted) return;
    await this.#accepted(link, { ...end, outcome: REFUSED });
  }

  /** Whether this end is the last word: it is stored, or nobody wants to know. Throws when it has to be sent again. */
  async #accepted(link: Link, end: RunEnd): Promise<boolean> {
    const { signal } = this.#gone;
    try {
      await link.post(`/api/runs/${this.id}/end`, end, { timeoutMs: END_TIMEOUT_MS, signal, ofRun: true });
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (!(error instanceof Refused)) throw error;
      log.warning("The service refuses the end of run {id}: {error}", { id: this.id, error: error.message });
      return error.final;
    }
  }
}
