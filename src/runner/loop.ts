// Claims runs, keeps their leases, and ends what belongs here no longer
import { sleep } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import { logger } from "../base/log.ts";
import { realPath } from "../base/paths.ts";
import { VERSION } from "../base/version.ts";
import {
  CLAIM_WAIT_MAX_MS,
  LEASE_TIMES,
  type LeaseTimes,
  RUNNER_PROTOCOL,
  type RunnerClaim,
  type RunnerClaimed,
  type RunnerHeard,
  type WireOrder,
} from "../domain/runner.ts";
import { failedOutcome } from "../engine/engine.ts";
import { OutcomeWriter } from "../run/outcome_writer.ts";
import { type Interruption, Runner } from "../run/runner.ts";
import { Lease } from "./lease.ts";
import { type Moment, Refused } from "./link.ts";
import { RemoteRun, type RemoteRunOptions } from "./remote_run.ts";

const log = logger("runner");

/** What the loop works with. */
interface LoopOptions extends RemoteRunOptions {
  maxRuns: number;
  /** Of its work_root; the same after a restart. */
  place: string;
}

// An engine is asked to end, and then told to, before it is ended by force.
const ENDING_MS = 2_000;
const LOOK_EVERY_MS = 250;
const CLAIM_TIMEOUT_MS = CLAIM_WAIT_MAX_MS + 10_000;
const REFUSED_PAUSE_MS = 5_000;

/** The work of a runner from its start to its stop. */
export class RunnerLoop {
  readonly #options: LoopOptions;
  readonly #process = crypto.randomUUID();
  readonly #runner: Runner;
  readonly #runs = new Map<string, RemoteRun>();
  /** The end of the latest run in each directory. */
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #ended = new AbortController();
  #epoch = 0;
  #times: LeaseTimes = LEASE_TIMES;
  /** Called when a slot may be free. */
  #freed: () => void = () => {};

  constructor(options: LoopOptions) {
    this.#options = options;
    const { clock } = options;
    this.#runner = new Runner(clock, new OutcomeWriter(clock, () => false));
  }

  /** How many runs are in progress. */
  get running(): number {
    return this.#runs.size;
  }

  /** Ends what a runner before this one has left, and claims runs until stop(). Throws Refused when the service wants none of it. */
  async run(): Promise<void> {
    await this.#options.leftovers.sweep();
    const beats = this.#beats();
    const watch = this.#watch();
    try {
      while (!this.#stopping.signal.aborted) {
        await this.#slot();
        if (!this.#stopping.signal.aborted) await this.#claim();
      }
    } finally {
      if (!this.#stopping.signal.aborted) await this.#abandon();
      await Promise.all([...this.#lanes.values()]);
      this.#ended.abort();
      await Promise.all([beats, watch]);
    }
  }

  /** Claims nothing more. Runs may end within `graceMs`; the rest is ended and goes back to the queue. */
  async stop(graceMs: number, hurried: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.#freed();
    const all = Promise.all([...this.#lanes.values()]);
    if (this.#runs.size > 0) await Promise.race([all, sleep(this.#options.clock, graceMs, hurried)]);
    await this.#runner.stopAll();
  }

  async #slot(): Promise<void> {
    while (this.#runs.size >= this.#options.maxRuns && !this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => this.#freed = resolve);
    }
  }

  async #claim(): Promise<void> {
    const { link, clock } = this.#options;
    const request = this.#request();
    const sending = { timeoutMs: CLAIM_TIMEOUT_MS, signal: this.#stopping.signal };
    try {
      const { value, sentAt } = await link.insist<RunnerClaimed>("/api/runners/claim", request, sending);
      this.#enter(value);
      if (value.run !== null) this.#start(value.run, new Lease(clock, value.lease_ms, sentAt));
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      // Another process may run under this name, and end soon; a process that was replaced never claims again.
      if (error.status !== 409 || this.#epoch !== 0) throw error;
      log.warning("The service refuses this runner, and is asked again: {error}", { error: error.message });
      await sleep(clock, REFUSED_PAUSE_MS, this.#stopping.signal);
    }
  }

  #request(): RunnerClaim {
    const { engines, paths, maxRuns, place } = this.#options;
    return {
      request_id: newId(),
      process: this.#process,
      place,
      epoch: this.#epoch,
      protocol: RUNNER_PROTOCOL,
      version: VERSION,
      work_root: paths.root,
      max_runs: maxRuns,
      engines: engines.names.flatMap((name) => {
        const engine = engines.find(name);
        return engine === null ? [] : [{ name, agent: engine.agent, external: engine.external }];
      }),
      wait_ms: CLAIM_WAIT_MAX_MS,
    };
  }

  #enter({ epoch, version, lease_ms, beat_ms, margin_ms }: RunnerClaimed): void {
    if (this.#epoch === 0) {
      log.info("Connected to svc {version} at {url}", { version, url: this.#options.link.url });
    }
    this.#epoch = epoch;
    this.#times = { lease_ms, beat_ms, margin_ms };
  }

  #start(order: WireOrder, lease: Lease): void {
    const { leftovers } = this.#options;
    const run = new RemoteRun(this.#options, order, { epoch: this.#epoch, lease });
    this.#runs.set(run.id, run);
    // The service gives a directory one run at a time; after a lease that was lost it may not know what is still going on here.
    const lane = realPath(order.work_dir);
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const ended = before.then(() => {
      // While it waited it may have become another one's.
      if (run.disowned) return;
      leftovers.begin(run.id, order.execution.run_id);
      const done = this.#runner.start({
        identity: order.execution,
        work: (signal) => run.run(signal),
        broken: failedOutcome(
          "spawn_failed",
          "Cannot run this: the runner could not prepare it; its log tells more",
        ),
        store: (outcome, interruption) => run.tell(outcome, interruption),
      });
      // Those that had begun may end; this one had not, and goes back to the queue.
      if (this.#stopping.signal.aborted) this.#interrupt(run.id, "shutdown");
      return done;
    }).catch((error) => log.error("The run {id} broke: {error}", { id: run.id, error })).then(() => {
      leftovers.end(run.id);
      this.#runs.delete(run.id);
      if (this.#lanes.get(lane) === ended) this.#lanes.delete(lane);
      this.#freed();
    });
    this.#lanes.set(lane, ended);
  }

  async #beats(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#ended.signal.aborted) {
      await sleep(clock, this.#times.beat_ms, this.#ended.signal);
      if (this.#runs.size > 0 && !this.#ended.signal.aborted) await this.#beat();
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
      // Without an answer the leases go on to their end; refused, nothing here is ours any more.
      if (error instanceof Refused) await this.#abandon();
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
      if (word.stop !== "") this.#interrupt(id, word.stop as Interruption);
    }
  }

  // Ends runs whose leases are about to be over: when they are, somebody else may begin.
  async #watch(): Promise<void> {
    const { clock, config } = this.#options;
    while (!this.#ended.signal.aborted) {
      await sleep(clock, LOOK_EVERY_MS, this.#ended.signal);
      const neededMs = this.#times.margin_ms + config.limits.stop_grace + ENDING_MS;
      for (const [id, { lease }] of this.#runs) if (lease.leftMs < neededMs) this.#interrupt(id, "lost");
    }
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
