// pending -> running, and a new execution in the same batch; with a gate, its occurrence -> gating
import type { Clock } from "../base/clock.ts";
import type { Catalog } from "../engine/catalog.ts";
import { faultPoint } from "../base/fault_point.ts";
import type { Gate } from "../domain/command.ts";
import type { Hold } from "../domain/hold.ts";
import { newId } from "../base/id.ts";
import { logger } from "../base/log.ts";
import { askGate, type Claim, startRun } from "../run/claim.ts";
import type { InstantClaim } from "../run/instant.ts";
import type { Waits } from "../base/waits.ts";
import type { Database, Statement } from "../store/database.ts";
import type { NewExecution } from "../store/execution.ts";
import { listInstructions } from "../store/instant_run.ts";
import { reserve } from "../store/ledger.ts";
import { tellRunLimit } from "../store/run_limit.ts";
import { findWork } from "../store/task.ts";
import { holdTasks, releaseTasks } from "../store/task_move.ts";
import { listHeldHeads, listLaneHeads, nextDueAt, type WaitingTask } from "../store/task_queue.ts";
import { BELL, type Bells } from "../base/bells.ts";
import type { Admission, Reservation } from "./admission.ts";
import { Stage } from "./loop.ts";

/** What the dispatcher works with. */
interface DispatcherOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  engines: Catalog;
  /** The runs that wait for a person: they hold their lane, and no slot. */
  waits: Waits;
  admission: Admission;
  maxConcurrentRuns: number;
  maxAttempts: number;
  executor: {
    /** Runs an execution to its end; never throws. */
    execute: (claim: Claim) => Promise<void>;
    /** The same behind its gate, which decides whether there is one (contract 15). */
    executeGated: (claim: Claim, gate: Gate) => Promise<void>;
    /** Runs claims of engines inside this process that nobody has stored; answers those that have to be claimed first. */
    executeInstant: (claims: readonly InstantClaim[]) => Promise<InstantClaim[]>;
  };
}

const log = logger("dispatcher");

// Their instructions are read at once, up to 256 KiB each.
const INSTANT_MAX = 64;
// A large one would make that commit a long turn for everybody (reliability BYT-1).
const INSTANT_MAX_BYTES = 16 * 1024;

/** A task that may start, in its lane. */
interface Chosen {
  task: WaitingTask;
  lane: string;
  reservation: Reservation;
}

/** Claims due tasks for free lanes, oldest first: one run per work directory, and at most `maxConcurrentRuns` (contract 4.5). */
export class Dispatcher {
  readonly stage: Stage;
  readonly #options: DispatcherOptions;
  /** Work directories, as real paths, with a run in progress. */
  readonly #lanes = new Set<string>();
  readonly #runs = new Set<Promise<void>>();
  /** Runs that begin and end in one commit, and how many they are. */
  readonly #batches = new Set<Promise<void>>();
  #instant = 0;
  #lastChance = false;
  #draining = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { clock, bells } = options;
    this.stage = new Stage({
      name: "dispatcher",
      bell: BELL.dispatcher,
      clock,
      bells,
      step: () => options.admission.inTurn(() => this.#step()),
    });
  }

  /** Starts no more runs; those in progress may finish. */
  drain(): void {
    this.#draining = true;
  }

  /** How many runs are in progress. */
  get running(): number {
    return this.#runs.size + this.#instant;
  }

  /** Resolves when no run is in progress. */
  async settled(): Promise<void> {
    while (this.running > 0) await Promise.allSettled([...this.#runs, ...this.#batches]);
  }

  async #step(): Promise<number> {
    const { db, clock, admission, maxConcurrentRuns } = this.#options;
    const free = maxConcurrentRuns - this.#slotsTaken();
    // The end of a run rings the bell, so this round can be skipped.
    if (this.#draining || free <= 0) return Infinity;
    const now = clock.now();
    // Of a lane whose run ends while we look at others, we have seen what was before.
    const busy = new Set(this.#lanes);
    const heads = await listHeads(db, now);
    const round = heads.length === 0 ? null : await admission.round(now);
    const chosen: Chosen[] = [];
    const notes: Statement[] = [];
    let nextAt = Infinity;
    for (const task of heads) {
      const lane = laneOf(task.work_dir);
      if (chosen.length === free || busy.has(lane) || this.#lanes.has(lane) || round === null) continue;
      const verdict = await round.judge(task);
      if (verdict.hold !== null) {
        nextAt = Math.min(nextAt, verdict.hold.until ?? Infinity);
        notes.push(...noteOf(task, verdict.hold, now));
        continue;
      }
      if (this.#isLastChance(task)) {
        if (this.#lastChance) continue;
        this.#lastChance = true;
      }
      this.#lanes.add(lane);
      chosen.push({ task, lane, reservation: verdict.reservation });
    }
    const instant = round?.hasBudgets ? [] : chosen.filter((one) => this.#isInstant(one));
    for (let at = 0; at < instant.length; at += INSTANT_MAX) {
      this.#startInstant(instant.slice(at, at + INSTANT_MAX), now);
    }
    await this.#claimAll(chosen.filter((one) => !instant.includes(one)), now);
    // Behind what is held now there may be a task that nothing holds.
    if (notes.length > 0) return await db.write(notes).then(() => 0);
    nextAt = Math.min(await nextDueAt(db, now) ?? Infinity, nextAt);
    return Math.max(0, nextAt - clock.now());
  }

  async #claimAll(chosen: readonly Chosen[], now: number): Promise<void> {
    const claims = await Promise.allSettled(chosen.map((one) => this.#claim(one, now)));
    for (const claim of claims) if (claim.status === "rejected") throw claim.reason;
  }

  // An engine inside this process is done at once: there is nothing to record before it is. Whatever is unusual takes the long way.
  #isInstant({ task }: Chosen): boolean {
    const { type, verify, held, attempt, bytes } = task;
    const engine = this.#options.engines.find(task.engine);
    return engine?.external === false && type === "immediate" && verify === "null" && held === "" &&
      attempt === 0 && bytes <= INSTANT_MAX_BYTES;
  }

  #startInstant(chosen: readonly Chosen[], now: number): void {
    const ended = this.#runInstant(chosen, now).finally(() => {
      this.#batches.delete(ended);
      this.#instant -= chosen.length;
    }).then(() => this.stage.wake(), (error) => {
      // The rows are as they were, and the next round finds them again.
      log.error("Cannot claim tasks: {error}", { error });
    });
    this.#instant += chosen.length;
    this.#batches.add(ended);
  }

  async #runInstant(chosen: readonly Chosen[], now: number): Promise<void> {
    const { db, executor } = this.#options;
    let left = chosen;
    try {
      const instructions = await listInstructions(db, chosen.map(({ task }) => task.id));
      const claims = new Map(chosen.map((one): [InstantClaim, Chosen] => {
        const { task, reservation: { targets } } = one;
        const execution = this.#executionOf(task, instructions.get(task.id) ?? "", now);
        return [{ execution, task, workDir: task.work_dir, targets }, one];
      }));
      const unstored = await executor.executeInstant([...claims.keys()]);
      left = unstored.flatMap((claim) => claims.get(claim) ?? []);
    } catch (error) {
      log.warning("Cannot run tasks in one commit, and claims them one by one: {error}", { error });
    }
    for (const one of chosen) if (!left.includes(one)) this.#release(one.task, one.lane);
    await this.#claimAll(left, now);
  }

  // As many runs as there are slots may wait beside those that work: more would be processes without a bound.
  #slotsTaken(): number {
    const { waits, maxConcurrentRuns } = this.#options;
    return this.running - Math.min(waits.size, maxConcurrentRuns);
  }

  // Tasks on their last attempt run one at a time: if one of them crashes the service, it does not use up the last attempt
  // of the others (reliability DSP-4).
  #isLastChance(task: { attempt: number }): boolean {
    return task.attempt > 0 && task.attempt + 1 >= this.#options.maxAttempts;
  }

  #release(task: { attempt: number }, lane: string): void {
    this.#lanes.delete(lane);
    if (this.#isLastChance(task)) this.#lastChance = false;
  }

  async #claim({ task, lane, reservation }: Chosen, now: number): Promise<void> {
    const { db } = this.#options;
    let won = false;
    let execution: NewExecution;
    let gate: Gate | null;
    try {
      const work = await findWork(db, task.id);
      // What its gate has let through is not asked again (contract 15).
      gate = work === null || work.passed !== null ? null : JSON.parse(work.gate) as Gate | null;
      execution = this.#executionOf(task, work?.passed ?? work?.instruction ?? "", now);
      ({ won } = await db.write([
        ...(gate === null ? startRun(execution, task.type) : askGate(execution)),
        reserve(execution.execution_id, reservation.targets, reservation.expected),
        ...(task.held === "" ? [] : [releaseTasks(task.worker_id, task.held, now)]),
      ]));
    } finally {
      if (!won) this.#release(task, lane);
    }
    if (won) faultPoint("claim.post");
    if (won) this.#run({ execution, task, workDir: task.work_dir }, gate, lane);
  }

  #executionOf(task: WaitingTask, instruction: string, now: number): NewExecution {
    return {
      session_key: task.session_key,
      worker_id: task.worker_id,
      task_id: task.id,
      execution_id: newId(),
      message_id: task.message_id,
      attempt: task.attempt + 1,
      run_id: crypto.randomUUID(),
      worker_name: task.worker_name,
      session_id: task.session_key,
      engine: this.#options.engines.find(task.engine)?.name ?? task.engine,
      instruction,
      created_at: now,
    };
  }

  #run(claim: Claim, gate: Gate | null, lane: string): void {
    const { executor } = this.#options;
    const begun = gate === null ? executor.execute(claim) : executor.executeGated(claim, gate);
    const run = begun.finally(() => {
      this.#release(claim.task, lane);
      this.#runs.delete(run);
      this.stage.wake();
    });
    this.#runs.add(run);
  }
}

// The oldest first, whether something held them or not: what is over lets the oldest through.
async function listHeads(db: Database, now: number): Promise<WaitingTask[]> {
  const [free, held] = await Promise.all([listLaneHeads(db, now), listHeldHeads(db)]);
  if (held.length === 0) return free;
  return [...free, ...held].sort((a, b) => a.due_at - b.due_at || (a.id < b.id ? -1 : 1));
}

/** What has to be written so that the tasks of this lane say what holds them; nothing when they do. */
function noteOf(task: WaitingTask, hold: Hold, now: number): Statement[] {
  if (task.held === hold.held && task.held_until === hold.until) return [];
  const { worker_id, session_key, message_id, id: task_id } = task;
  const often = { worker_id, session_key, message_id, task_id };
  return [
    ...(hold.held.startsWith("run_limit:") ? tellRunLimit(often, hold, now) : []),
    holdTasks(task, hold, now),
  ];
}

/** The lane of a work directory: its real path, so that two names of one directory are one lane. */
function laneOf(workDir: string): string {
  try {
    return Deno.realPathSync(workDir);
  } catch {
    return workDir;
  }
}
