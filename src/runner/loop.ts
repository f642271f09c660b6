// Claims runs, keeps their leases, and ends runs that this runner has lost.
import { sleep } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import { realPath } from "../base/paths.ts";
import {
  CLAIM_WAIT_MAX_MS,
  LEASE_TIMES,
  type LeaseTimes,
  type RunnerClaimed,
  type RunnerHeard,
  type WireOrder,
} from "../domain/workers/runner.ts";
import { failedOutcome } from "../engine/engine.ts";
import { OutcomeWriter } from "../run/outcome_writer.ts";
import { type Interruption, isInterruption } from "../domain/work/interruption.ts";
import { RunRegistry } from "../run/run_registry.ts";
import { CLAIM_PATH, claimedMeanwhile, claimOf } from "./claim.ts";
import { Lease } from "./lease.ts";
import { type Answered, type Moment, Refused } from "./service_client.ts";
import { RemoteRun, type RemoteRunOptions } from "./remote_run.ts";
import { waitForRoom } from "./disk_space.ts";

const log = logger("runner");

interface LoopOptions extends RemoteRunOptions {
  maxRuns: number;
  /** Identifies its work_root; the same after a restart. */
  place: string;
}

// Time for an engine to end after SIGTERM before it is killed.
const ENDING_MS = 2_000;
// How long a stop tries to report the ends of runs.
const TELLING_MS = 10_000;
const LOOK_EVERY_MS = 250;
const CLAIM_TIMEOUT_MS = CLAIM_WAIT_MAX_MS + 10_000;
const REFUSED_PAUSE_MS = 5_000;

const NOT_BEGUN = failedOutcome("spawn_failed", "Cannot start: the runner cannot write into its directory");

/** The main loop of a runner from its start to its stop. */
export class RunnerLoop {
  readonly #options: LoopOptions;
  readonly #process = crypto.randomUUID();
  readonly #runner: RunRegistry;
  readonly #runs = new Map<string, RemoteRun>();
  /** The end of the latest run in each directory. */
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #ended = new AbortController();
  /** Resolves when the service has sent the beat interval. */
  readonly #entered = Promise.withResolvers<void>();
  /** 0 for the first claim of a process. */
  #epoch = 0;
  #hasComeBack = false;
  #times: LeaseTimes = LEASE_TIMES;
  /** The latest claim. */
  #claiming = Promise.resolve();
  /** Called when a slot may be free. */
  #freed: () => void = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const { clock } = options;
    this.#runner = new RunRegistry(clock, new OutcomeWriter(clock, () => false));
  }

  get running(): number {
    return this.#runs.size;
  }

  /**
   * Ends the leftovers of an earlier runner, and claims runs until stop(). Throws Refused when the service rejects this
   * runner.
   */
  async run(): Promise<void> {
    await this.#options.leftovers.sweep();
    const beats = this.#beats();
    const watch = this.#watch();
    try {
      await this.#claims();
    } finally {
      if (!this.#stopping.signal.aborted) await this.#abandon();
      this.#stopping.abort();
      await Promise.all([...this.#lanes.values()]);
      this.#ended.abort();
      this.#entered.resolve();
      await Promise.all([beats, watch]);
    }
  }

  /** Stops claiming. Runs may end within `graceMs`. The others are ended and return to the queue. */
  async stop(graceMs: number, hurried: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.#freed();
    // A run from the last claim returns to the queue, too.
    await this.#claiming.catch(() => {});
    const { clock, config } = this.#options;
    const all = Promise.all([...this.#lanes.values()]);
    if (this.#runs.size > 0) await Promise.race([all, sleep(clock, graceMs, hurried)]);
    const told = new AbortController();
    const rest = Promise.all([...this.#lanes.values()]).then(() => told.abort());
    void this.#runner.stopAll();
    // An unreachable service must not block the stop. It learns of lost runs from the next process here, or from their
    // leases.
    await sleep(clock, config.limits.stop_grace + ENDING_MS + TELLING_MS, told.signal);
    for (const run of this.#runs.values()) run.disown();
    await rest;
  }

  async #claims(): Promise<void> {
    const { paths, clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      await this.#slot();
      await waitForRoom(paths.root, clock, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      this.#claiming = this.#claim();
      await this.#claiming;
    }
  }

  async #slot(): Promise<void> {
    while (this.#runs.size >= this.#options.maxRuns && !this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => this.#freed = resolve);
    }
  }

  async #claim(): Promise<void> {
    const { link, clock } = this.#options;
    const request = claimOf(this.#options, this.#process, this.#epoch);
    const sending = { timeoutMs: CLAIM_TIMEOUT_MS, signal: this.#stopping.signal };
    try {
      this.#begin(await link.insist<RunnerClaimed>(CLAIM_PATH, request, sending));
    } catch (error) {
      if (this.#stopping.signal.aborted) {
        const late = await claimedMeanwhile(link, request);
        return late === null ? undefined : this.#begin(late);
      }
      if (!(error instanceof Refused) || error.status !== 409 || this.#hasComeBack) throw error;
      const { message } = error;
      if (this.#epoch !== 0) return await this.#comeBack(message);
      // Another process may use this name, and end soon.
      log.warning("The service refused this runner, retrying: {error}", { error: message });
      await sleep(clock, REFUSED_PAUSE_MS, this.#stopping.signal);
    }
  }

  #begin({ value, sentAt }: Answered<RunnerClaimed>): void {
    this.#enter(value);
    if (value.run !== null) this.#start(value.run, new Lease(this.#options.clock, value.lease_ms, sentAt));
  }

  // The directory is locked by this process. A late claim of an ended process may have replaced it, so it may take over once. A
  // second refusal means that a copy of the directory exists elsewhere.
  async #comeBack(error: string): Promise<void> {
    log.warning("The service considers this runner replaced, retrying once: {error}", { error });
    this.#hasComeBack = true;
    this.#epoch = 0;
    await this.#abandon();
  }

  #enter({ epoch, version, lease_ms, beat_ms, margin_ms }: RunnerClaimed): void {
    if (this.#epoch === 0) {
      log.info("Connected to svc {version} at {url}", { version, url: this.#options.link.url });
    }
    this.#epoch = epoch;
    this.#times = { lease_ms, beat_ms, margin_ms };
    this.#entered.resolve();
  }

  #start(order: WireOrder, lease: Lease): void {
    const { leftovers } = this.#options;
    const run = new RemoteRun(this.#options, order, { epoch: this.#epoch, lease });
    this.#runs.set(run.id, run);
    // The service gives a directory one run at a time, but after a lost lease it may not know the run that still is in
    // progress here.
    const lane = realPath(order.work_dir);
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const ended = before.then(() => {
      // The runner may have lost this run while it waited.
      if (run.disowned) return;
      const noted = this.#note(run);
      const done = this.#runner.start({
        identity: order.execution,
        work: (signal) => noted ? run.run(signal) : Promise.resolve(NOT_BEGUN),
        broken: failedOutcome(
          "spawn_failed",
          "Cannot run this: the runner could not prepare it. See its log",
        ),
        store: (outcome, interruption) => run.tell(outcome, interruption),
      });
      // Started runs may end during a stop. This one has not started, so it returns to the queue. A run whose lease is about
      // to expire does not start either, because another runner may start it then (contract 18.7).
      if (this.#stopping.signal.aborted || !noted) this.#interrupt(run.id, "shutdown");
      else if (this.#isEnding(run)) this.#interrupt(run.id, "lost");
      return done;
    }).catch((error) => log.error("The run {id} broke: {error}", { id: run.id, error })).then(() => {
      leftovers.end(run.id);
      this.#runs.delete(run.id);
      if (this.#lanes.get(lane) === ended) this.#lanes.delete(lane);
      this.#freed();
    });
    this.#lanes.set(lane, ended);
  }

  // The next process here could not end a run without a note, so such a run does not start.
  #note({ id, order: { execution } }: RemoteRun): boolean {
    try {
      this.#options.leftovers.begin(id, execution.run_id);
      return true;
    } catch (error) {
      log.error("Cannot start run {id}, which returns to the queue: {error}", { id, error });
      return false;
    }
  }

  async #beats(): Promise<void> {
    const { clock } = this.#options;
    await this.#entered.promise;
    while (!this.#ended.signal.aborted) {
      await sleep(clock, this.#times.beat_ms, this.#ended.signal);
      if (this.#runs.size > 0 && this.#epoch !== 0 && !this.#ended.signal.aborted) await this.#beat();
    }
  }

  async #beat(): Promise<void> {
    const { link } = this.#options;
    const beat = { process: this.#process, epoch: this.#epoch, running: [...this.#runs.keys()] };
    try {
      const { value, sentAt } = await link.post<RunnerHeard>("/api/runners/beat", beat, {
        timeoutMs: Math.max(this.#times.beat_ms, 1_000),
      });
      this.#hear(beat.running, value, sentAt);
    } catch (error) {
      // Without an answer the leases run out. After a refusal this runner has no runs.
      if (error instanceof Refused && beat.epoch === this.#epoch) await this.#abandon();
    }
  }

  #hear(asked: readonly string[], { runs }: RunnerHeard, sentAt: Moment): void {
    const heard = new Map(runs.map((run) => [run.id, run]));
    for (const id of asked) {
      const run = this.#runs.get(id);
      const word = heard.get(id);
      if (run === undefined) continue;
      if (word === undefined) {
        run.disown();
        this.#interrupt(id, "lost");
        continue;
      }
      run.lease.renew(sentAt);
      run.waitedMs = word.waited_ms;
      if (word.stop !== "") this.#interrupt(id, isInterruption(word.stop) ? word.stop : "cancelled");
    }
  }

  // Ends runs before their leases expire, because another runner may start them then.
  async #watch(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await sleep(this.#options.clock, LOOK_EVERY_MS, this.#ended.signal);
      for (const run of this.#runs.values()) if (this.#isEnding(run)) this.#interrupt(run.id, "lost");
    }
  }

  #isEnding({ lease }: RemoteRun): boolean {
    return lease.leftMs < this.#times.margin_ms + this.#options.config.limits.stop_grace + ENDING_MS;
  }

  #interrupt(id: string, reason: Interruption): void {
    void this.#runner.interrupt({ execution_id: id }, reason);
  }

  // Another process has taken over, or the runner was removed.
  async #abandon(): Promise<void> {
    for (const run of this.#runs.values()) run.disown();
    await Promise.all(
      [...this.#runs.keys()].map((id) => this.#runner.interrupt({ execution_id: id }, "lost")),
    );
  }
}
