// Claims runs, keeps their leases, and ends runs that this runner has lost.
import { sleep } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import { resolveLinks } from "../base/paths.ts";
import {
  CLAIM_WAIT_MAX_MS,
  LEASE_TIMES,
  type LeaseTimes,
  type RunnerBeatAnswer,
  type RunnerClaimAnswer,
  type WireOrder,
} from "../domain/workers/runner.ts";
import { buildFailedOutcome } from "../engine/engine.ts";
import { OutcomeWriter } from "../run/outcome_writer.ts";
import { type Interruption, isInterruption } from "../domain/work/interruption.ts";
import { RunRegistry } from "../run/run_registry.ts";
import { buildClaim, CLAIM_PATH, repeatClaim } from "./claim.ts";
import { Lease } from "./lease.ts";
import { type Moment, RefusedError, type ServiceAnswer } from "./service_client.ts";
import { RemoteRun, type RemoteRunOptions } from "./remote_run.ts";
import { waitForSpace } from "./disk_space.ts";

const log = createLogger("runner");

interface LoopOptions extends RemoteRunOptions {
  maxRuns: number;
  /** Identifies the work_root. The same after a restart. */
  place: string;
  /** Why this machine cannot set up a box, or null. */
  boxFault: string | null;
  /** Whether this machine has git, for workers with a repository. */
  hasGit: boolean;
}

/** The end of a loop that got no run in time, or of a run whose end the service did not store. */
export type OnceResult = "reported" | "unreported" | "no run";

// An engine gets SIGINT 2 s before SIGTERM, and is killed `stop_grace` after it. The watch and the signals take time, too.
const ENDING_MS = 3_000;
// How long a stop tries to report the ends of runs.
const REPORTING_MS = 10_000;
const CHECK_EVERY_MS = 250;
const CLAIM_TIMEOUT_MS = CLAIM_WAIT_MAX_MS + 10_000;
const REFUSED_PAUSE_MS = 5_000;
/** How long a runner of one run waits for it. A launcher starts it for a run that waits already. */
export const ONCE_WAIT_MAX_MS = 300_000;

const NOT_STARTED = buildFailedOutcome(
  "spawn_failed",
  "Cannot start: the runner cannot write into its directory",
);

/** The main loop of a runner from its start to its stop. */
export class RunnerLoop {
  readonly #options: LoopOptions;
  readonly #process = crypto.randomUUID();
  readonly #registry: RunRegistry;
  readonly #runs = new Map<string, RemoteRun>();
  /** The end of the latest run in each directory. */
  readonly #lastInDir = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #ended = new AbortController();
  /** Resolves when the service has sent the beat interval. */
  readonly #connected = Promise.withResolvers<void>();
  /** 0 for the first claim of a process. */
  #epoch = 0;
  #hasReconnected = false;
  /** The latest run. */
  #latest: RemoteRun | null = null;
  #times: LeaseTimes = LEASE_TIMES;
  /** The latest claim. */
  #claiming = Promise.resolve();
  /** Called when a slot may be free. */
  #onFree: () => void = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const { clock } = options;
    this.#registry = new RunRegistry(clock, new OutcomeWriter(clock, () => false));
  }

  get running(): number {
    return this.#runs.size;
  }

  /** How the only run of this loop ended. */
  get onceResult(): OnceResult {
    return this.#latest === null ? "no run" : this.#latest.isReported ? "reported" : "unreported";
  }

  /** Ends the leftovers of an earlier runner, and claims runs until stop(). Throws Refused when the service rejects this runner. */
  async run(): Promise<void> {
    await this.#options.leftovers.endAll();
    const beats = this.#sendBeats();
    const watch = this.#watch();
    try {
      await this.#claimAll();
    } finally {
      if (!this.#stopping.signal.aborted) await this.#abandon();
      this.#stopping.abort();
      await Promise.all([...this.#lastInDir.values()]);
      this.#ended.abort();
      this.#connected.resolve();
      await Promise.all([beats, watch]);
    }
  }

  /** Stops claiming. Runs may end within `graceMs`. The others are ended and return to the queue. */
  async stop(graceMs: number, hurried: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.#onFree();
    // If the last claim returned a run, the run goes back to the queue.
    await this.#claiming.catch(() => {});
    const { clock, config } = this.#options;
    const all = Promise.all([...this.#lastInDir.values()]);
    if (this.#runs.size > 0) await Promise.race([all, sleep(clock, graceMs, hurried)]);
    const reported = new AbortController();
    const rest = Promise.all([...this.#lastInDir.values()]).then(() => reported.abort());
    void this.#registry.stopAll();
    // An unreachable service must not block the stop. It learns of lost runs from the next process here, or from their leases.
    await sleep(clock, config.limits.stop_grace + ENDING_MS + REPORTING_MS, reported.signal);
    for (const run of this.#runs.values()) run.markLost();
    await rest;
  }

  async #claimAll(): Promise<void> {
    const { paths, clock, once } = this.#options;
    if (once) void this.#giveUpWaiting();
    while (!this.#stopping.signal.aborted && !(once && this.#latest !== null)) {
      await this.#waitForSlot();
      await waitForSpace(paths.root, clock, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      this.#claiming = this.#claim();
      await this.#claiming;
    }
    await Promise.all([...this.#lastInDir.values()]);
  }

  async #giveUpWaiting(): Promise<void> {
    await sleep(this.#options.clock, ONCE_WAIT_MAX_MS, this.#ended.signal);
    if (this.#latest === null) this.#stopping.abort();
  }

  async #waitForSlot(): Promise<void> {
    while (this.#runs.size >= this.#options.maxRuns && !this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => this.#onFree = resolve);
    }
  }

  async #claim(): Promise<void> {
    const { link, clock } = this.#options;
    const request = buildClaim(this.#options, this.#process, this.#epoch);
    const sending = { timeoutMs: CLAIM_TIMEOUT_MS, signal: this.#stopping.signal };
    try {
      this.#handleAnswer(await link.postUntilAnswered<RunnerClaimAnswer>(CLAIM_PATH, request, sending));
    } catch (error) {
      if (this.#stopping.signal.aborted) {
        const late = await repeatClaim(link, request);
        return late === null ? undefined : this.#handleAnswer(late);
      }
      const isFinal = this.#hasReconnected || this.#options.once;
      if (!(error instanceof RefusedError) || error.status !== 409 || isFinal) throw error;
      const { message } = error;
      if (this.#epoch !== 0) return await this.#reconnect(message);
      // Another process may use this name, and end soon.
      log.warning("The service refused this runner, retrying: {error}", { error: message });
      await sleep(clock, REFUSED_PAUSE_MS, this.#stopping.signal);
    }
  }

  #handleAnswer({ value, sentAt }: ServiceAnswer<RunnerClaimAnswer>): void {
    this.#storeLeaseTimes(value);
    if (value.run !== null) this.#start(value.run, new Lease(this.#options.clock, value.lease_ms, sentAt));
  }

  // The directory is locked by this process. A late claim of an ended process may have replaced it, so it may take over once. A second
  // refusal means that a copy of the directory exists elsewhere.
  async #reconnect(error: string): Promise<void> {
    log.warning("The service considers this runner replaced, retrying once: {error}", { error });
    this.#hasReconnected = true;
    this.#epoch = 0;
    await this.#abandon();
  }

  #storeLeaseTimes({ epoch, version, lease_ms, beat_ms, margin_ms }: RunnerClaimAnswer): void {
    if (this.#epoch === 0) {
      log.info("Connected to svc {version} at {url}", { version, url: this.#options.link.url });
    }
    this.#epoch = epoch;
    this.#times = { lease_ms, beat_ms, margin_ms };
    this.#connected.resolve();
  }

  #start(order: WireOrder, lease: Lease): void {
    const { leftovers } = this.#options;
    const run = new RemoteRun(this.#options, order, { epoch: this.#epoch, lease });
    this.#runs.set(run.id, run);
    this.#latest = run;
    // The service gives a directory one run at a time, but after a lost lease it may not know the run that still is in progress here.
    const workDir = resolveLinks(order.work_dir);
    const before = this.#lastInDir.get(workDir) ?? Promise.resolve();
    const ended = before.then(() => {
      // The runner may have lost this run while it waited.
      if (run.isLost) return;
      const isRecorded = this.#recordRun(run);
      const done = this.#registry.start({
        identity: order.execution,
        work: (signal) => isRecorded ? run.run(signal) : Promise.resolve(NOT_STARTED),
        broken: buildFailedOutcome(
          "spawn_failed",
          "Cannot run this: the runner could not prepare it. See its log",
        ),
        store: (outcome, interruption) => run.reportEnd(outcome, interruption),
      });
      // Started runs may end during a stop. This one has not started, so it returns to the queue. A run whose lease is about to expire
      // does not start either, because another runner may start it then (contract 18.7).
      if (this.#stopping.signal.aborted || !isRecorded) this.#interrupt(run.id, "shutdown");
      else if (this.#isEnding(run)) this.#interrupt(run.id, "lost");
      return done;
    }).catch((error) => log.error("The run {id} broke: {error}", { id: run.id, error })).then(() => {
      leftovers.remove(run.id);
      this.#runs.delete(run.id);
      if (this.#lastInDir.get(workDir) === ended) this.#lastInDir.delete(workDir);
      this.#onFree();
    });
    this.#lastInDir.set(workDir, ended);
  }

  // A run without a record does not start, because the next runner in this directory could not end it.
  #recordRun({ id, order: { execution } }: RemoteRun): boolean {
    try {
      this.#options.leftovers.record(id, execution.run_id);
      return true;
    } catch (error) {
      log.error("Cannot start run {id}, which returns to the queue: {error}", { id, error });
      return false;
    }
  }

  async #sendBeats(): Promise<void> {
    const { clock } = this.#options;
    await this.#connected.promise;
    while (!this.#ended.signal.aborted) {
      await sleep(clock, this.#times.beat_ms, this.#ended.signal);
      if (this.#runs.size > 0 && this.#epoch !== 0 && !this.#ended.signal.aborted) await this.#sendBeat();
    }
  }

  async #sendBeat(): Promise<void> {
    const { link } = this.#options;
    const beat = { process: this.#process, epoch: this.#epoch, running: [...this.#runs.keys()] };
    try {
      const { value, sentAt } = await link.post<RunnerBeatAnswer>("/api/runners/beat", beat, {
        timeoutMs: Math.max(this.#times.beat_ms, 1_000),
      });
      this.#applyAnswer(beat.running, value, sentAt);
    } catch (error) {
      // Without an answer the leases run out. After a refusal this runner has no runs.
      if (error instanceof RefusedError && beat.epoch === this.#epoch) await this.#abandon();
    }
  }

  #applyAnswer(sent: readonly string[], { runs }: RunnerBeatAnswer, sentAt: Moment): void {
    const reports = new Map(runs.map((run) => [run.id, run]));
    for (const id of sent) {
      const run = this.#runs.get(id);
      const report = reports.get(id);
      if (run === undefined) continue;
      if (report === undefined) {
        run.markLost();
        this.#interrupt(id, "lost");
        continue;
      }
      run.lease.renew(sentAt);
      run.waitedMs = report.waited_ms;
      if (report.stop !== "") this.#interrupt(id, isInterruption(report.stop) ? report.stop : "cancelled");
    }
  }

  // Ends runs before their leases expire, because another runner may start them then.
  async #watch(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await sleep(this.#options.clock, CHECK_EVERY_MS, this.#ended.signal);
      for (const run of this.#runs.values()) if (this.#isEnding(run)) this.#interrupt(run.id, "lost");
    }
  }

  #isEnding({ lease }: RemoteRun): boolean {
    return lease.leftMs < this.#times.margin_ms + this.#options.config.limits.stop_grace + ENDING_MS;
  }

  #interrupt(id: string, reason: Interruption): void {
    void this.#registry.interrupt({ execution_id: id }, reason);
  }

  // Ends all runs without reports, because another process has taken over, or the runner was removed.
  async #abandon(): Promise<void> {
    for (const run of this.#runs.values()) run.markLost();
    await Promise.all(
      [...this.#runs.keys()].map((id) => this.#registry.interrupt({ execution_id: id }, "lost")),
    );
  }
}
