import { createScheduler } from "../../../src/pipeline/dispatch/scheduler.ts";
import type { Stage } from "../../../src/pipeline/stage/stage.ts";
import { buildNewTask } from "../../../src/domain/work/task.ts";
import { planTask } from "../../../src/domain/work/task_plan.ts";
import { createId } from "../../../src/base/id.ts";
import { Database, type Statement, type WriteResult } from "../../../src/store/db/database.ts";
import { finishExecution, insertExecution } from "../../../src/store/work/execution.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { insertTask } from "../../../src/store/work/task.ts";
import { rescheduleTask } from "../../../src/store/work/schedule_transitions.ts";
import { claimTask } from "../../../src/store/work/task_transitions.ts";
import { insertWorker } from "../../../src/store/workers/worker.ts";
import { findNextOccurrence } from "../../../src/domain/work/cron.ts";
import { Wakeups } from "../../../src/base/wakeups.ts";
import type { TestClock } from "../clock.ts";

const MINUTE_MS = 60_000;

/** A database whose writes can fail: before they are executed, or right after, like a crash. */
class FaultyDatabase {
  /** Decides whether the next write succeeds. */
  fault: () => "none" | "before" | "after" = () => "none";

  constructor(readonly real: Database) {}

  get db(): Database {
    return new Proxy(this.real, {
      get: (target, name) => {
        if (name === "write") return (statements: Statement[]) => this.#write(statements);
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async #write(statements: Statement[]): Promise<WriteResult> {
    const fault = this.fault();
    if (fault === "before") throw new Error("injected: before the commit");
    const written = await this.real.write(statements);
    if (fault === "after") throw new Error("injected: after the commit");
    return written;
  }
}

/** A schedule with its scheduler, and a loop that runs due tasks immediately. */
export class ScheduleBench {
  readonly clock: TestClock;
  readonly faulty: FaultyDatabase;
  readonly workerId = createId();
  readonly zone: string;
  readonly catchUpWindowMs: number;
  runMs = 0;
  readonly #wakeups = new Wakeups();
  #stages: Stage[] = [];
  #open = new Map<string, { executionId: string; until: number }>();

  private constructor(clock: TestClock, db: Database, zone: string, catchUpWindowMs: number) {
    this.clock = clock;
    this.faulty = new FaultyDatabase(db);
    this.zone = zone;
    this.catchUpWindowMs = catchUpWindowMs;
  }

  static async open(
    clock: TestClock,
    options: { zone?: string; catchUpWindowMs?: number } = {},
  ): Promise<ScheduleBench> {
    const db = await Database.open(":memory:");
    await migrate(db, clock.now());
    const bench = new ScheduleBench(clock, db, options.zone ?? "UTC", options.catchUpWindowMs ?? 3_600_000);
    const worker = {
      id: bench.workerId,
      name: "w",
      description: "",
      memory: "",
      constraints: "",
      engine: "",
      engine_args: {},
      env: {},
      scopes: [],
      verify: null,
      runs_on: [],
      home: "" as const,
      resources: null,
      gateways: [],
      repo: null,
      fallback: false,
      isolation: null,
      mcp: {},
      skills: [],
      work_dir: "/tmp",
      paused: false,
      created_at: 0,
      updated_at: 0,
    };
    await db.write(insertWorker(worker, []));
    return bench;
  }

  get db(): Database {
    return this.faulty.real;
  }

  async add(cron: string): Promise<string> {
    const now = this.clock.now();
    const plan = planTask({ type: "scheduled", cron }, now, this.zone);
    const seed = {
      id: createId(),
      message_id: "m",
      worker_id: this.workerId,
      session_key: "cli:m",
      instruction: "x",
      type: "scheduled" as const,
      created_by: "test",
    };
    const task = buildNewTask(seed, plan, now);
    await this.db.write(insertTask({ ...task, due_at: null, parent_task_id: null, depth: 0 }));
    return seed.id;
  }

  /** Starts `count` schedulers, like as many servers. */
  start(count = 1): void {
    for (let i = 0; i < count; i++) {
      const stage = createScheduler({
        db: this.faulty.db,
        clock: this.clock,
        wakeups: this.#wakeups,
        defaultZone: this.zone,
        catchUpWindowMs: this.catchUpWindowMs,
        interruptRun: () => Promise.resolve(),
      });
      stage.start();
      this.#stages.push(stage);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#stages.map((stage) => stage.stop()));
    this.#stages = [];
  }

  /** Wakes the schedulers, then runs every pending task for `runMs`. */
  async settle(): Promise<void> {
    await this.#quiet();
    const now = this.clock.now();
    for (const [taskId, run] of this.#open) if (run.until <= now) await this.#finish(taskId, run.executionId);
    const pending = await this.db.read<{ id: string }>("select id from task where status = 'pending'");
    for (const { id } of pending) await this.#begin(id);
    await this.#quiet();
  }

  async #quiet(): Promise<void> {
    const target = this.#stages.map((stage) => stage.rounds + 1);
    for (const stage of this.#stages) stage.wake();
    for (let turn = 0; turn < 200; turn++) {
      if (this.#stages.every((stage, index) => stage.idle && stage.rounds >= (target[index] ?? 0))) return;
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }

  async #begin(taskId: string): Promise<void> {
    const now = this.clock.now();
    const executionId = createId();
    await this.db.write([
      ...claimTask(taskId, executionId, now),
      insertExecution({
        execution_id: executionId,
        worker_id: this.workerId,
        worker_name: "w",
        task_id: taskId,
        message_id: "m",
        session_key: "cli:m",
        session_id: "",
        engine: "echo",
        fallback_from: "",
        instruction: "x",
        attempt: 1,
        run_id: "",
        created_at: now,
      }),
    ]);
    if (this.runMs === 0) await this.#finish(taskId, executionId);
    else this.#open.set(taskId, { executionId, until: now + this.runMs });
  }

  async #finish(taskId: string, executionId: string): Promise<void> {
    const now = this.clock.now();
    const row = await this.db.first<{ cron: string }>("select cron from task where id = ?", [taskId]);
    const end = {
      status: "completed" as const,
      session_id: "",
      result: "",
      error: "",
      failure: "" as const,
      exit_code: 0,
      usage: { input_tokens: null, output_tokens: null, cost_usd: null },
    };
    await this.db.write([
      ...finishExecution(executionId, end, now),
      rescheduleTask(
        { task_id: taskId, execution_id: executionId, of: "run" },
        { status: "completed", error: "", counts: false },
        { next: findNextOccurrence(row?.cron ?? "", this.zone, now) ?? now, reason: "" },
        now,
      ),
    ]);
    this.#open.delete(taskId);
  }

  /** Advances the clock in `steps` steps and settles after each. */
  async pass(steps: number, minutes = 1): Promise<void> {
    for (let i = 0; i < steps; i++) {
      this.clock.advance(minutes * MINUTE_MS);
      await this.settle();
    }
  }

  /** Returns the due times of a task's runs: the minutes of its occurrences, in order. */
  async fired(taskId: string): Promise<string[]> {
    const rows = await this.db.read<{ minute: number }>(
      "select minute from occurrence where task_id = ? and minute is not null order by minute",
      [taskId],
    );
    return rows.map((row) => new Date(row.minute * MINUTE_MS).toISOString().slice(0, 16));
  }

  async runs(): Promise<number> {
    return (await this.db.first<{ n: number }>("select count(*) as n from execution"))?.n ?? 0;
  }

  /** Sums the omitted runs that the journal reports under this kind. */
  async left(kind: "task.missed" | "task.skipped"): Promise<number> {
    const rows = await this.db.read<{ data: string }>("select data from journal where kind = ?", [kind]);
    return rows.reduce((sum, row) => sum + JSON.parse(row.data).count, 0);
  }
}

/** Creates a generator of random numbers from a seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
