import { expect } from "vitest";
import type { Call } from "../../src/api/call/call.ts";
import { createId } from "../../src/base/id.ts";
import { RecentActivity } from "../../src/base/recent_activity.ts";
import { HumanWaits } from "../../src/base/human_waits.ts";
import { parseJson } from "../../src/domain/call/json.ts";
import { Rescuer } from "../../src/pipeline/maintenance/rescuer.ts";
import { createScheduler } from "../../src/pipeline/dispatch/scheduler.ts";
import type { Stage } from "../../src/pipeline/stage/stage.ts";
import { startGatedRun, startGateRun, startRun } from "../../src/run/claim.ts";
import { endRun, STOPPED } from "../../src/run/ending.ts";
import { buildGateEnd, type GateVerdict, storeGateEnd } from "../../src/run/local/gate_end.ts";
import { type ExecutionEnd, type NewExecution, startExecution } from "../../src/store/work/execution.ts";
import { insertReservation } from "../../src/store/workers/budget_ledger.ts";
import { isGateWanted } from "../../src/store/work/occurrence.ts";
import { findTask, findWork } from "../../src/store/work/task.ts";
import { listNextTasks } from "../../src/store/work/task_queue.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { expectCounters } from "../harness/model/counters.ts";
import { createRandom } from "../harness/model/schedule.ts";
import type { GateEnd, RunEnd } from "./expected.ts";
import { MODEL_ATTEMPTS, ScheduleModel } from "./model.ts";

const RULES = { defaultZone: "UTC", maxAttempts: MODEL_ATTEMPTS };
const NOTHING = { runs: 1, tokens: 0, ms: 0, nano_usd: 0 };
/** A caller with all scopes. */
export const CALL: Call = {
  caller: { subject: "user:test", scopes: ["*:*"], run: null, person: null },
  findAccessEnd: () => Promise.resolve(null),
  idempotency: null,
  trace: "",
};
const USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };
const FAILURE = {
  completed: "",
  failed: "exit_code",
  cancelled: "cancelled",
  lost: "server_lost",
  stopped: "server_lost",
} as const;

/** The service and its model. Every operation applies to both. */
export class World implements AsyncDisposable {
  readonly model = new ScheduleModel();
  readonly #claims = new Map<string, NewExecution>();
  readonly clock: TestClock;
  readonly chance: () => number;
  readonly #app: App;
  #scheduler: Stage | null = null;
  /** Runs that the scheduler interrupted since the last look. */
  #interruptedRuns: string[] = [];
  workers: string[] = [];

  private constructor(seed: number, app: App, clock: TestClock) {
    this.#app = app;
    this.clock = clock;
    this.chance = createRandom(seed);
  }

  static async open(seed: number): Promise<World> {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    const app = await openApp({ clock, inMemory: true });
    // The test does the work of the stages, one step at a time.
    await Promise.all(app.server.stages.map((stage) => stage.stop()));
    const world = new World(seed, app, clock);
    app.server.parts.interruptRun = (id) => world.#interrupted(id);
    world.#startScheduler();
    for (let i = 0; i < 3; i++) await world.hire();
    return world;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scheduler?.stop();
    await this.#app[Symbol.asyncDispose]();
  }

  get api() {
    return this.#app.server.api;
  }

  get #db() {
    return this.#app.db;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.chance() * list.length)] as T;
  }

  #startScheduler(): void {
    const { wakeups } = this.#app.server.parts;
    this.#scheduler = createScheduler({
      ...{ db: this.#db, clock: this.clock, wakeups, defaultZone: "UTC", catchUpWindowMs: 3_600_000 },
      interruptRun: (id) => {
        this.#interruptedRuns.push(id);
        return Promise.resolve();
      },
    });
    this.#scheduler.start();
  }

  async hire(): Promise<void> {
    const lists = {
      engine_args: {},
      departments: [],
      scopes: [],
      verify: null,
      runs_on: [],
      home: "" as const,
      resources: null,
      isolation: null,
      repo: null,
      mcp: {},
      skills: [],
      gateways: [],
      env: {},
    };
    const texts = { name: "w", description: "", memory: "", constraints: "", engine: "", work_dir: "/tmp" };
    const made = await this.api.worker.create(CALL, { ...texts, ...lists, fallback: false, paused: false });
    this.workers.push(parseJson(made.json).id);
  }

  /** Claims the first task of each free worker as the dispatcher does, and compares them with the model. */
  async dispatch(label: string): Promise<void> {
    const now = this.clock.now();
    const { heads } = await listNextTasks(this.#db, now);
    expect(heads.map(({ id }) => id).sort(), label).toEqual(this.model.heads(now));
    for (const head of heads) {
      if (!this.model.isFree(head.worker_id)) continue;
      const work = await findWork(this.#db, head.id);
      const execution: NewExecution = {
        ...{
          execution_id: createId(),
          run_id: crypto.randomUUID(),
          task_id: head.id,
          attempt: head.attempt + 1,
        },
        ...{ worker_id: head.worker_id, worker_name: "w", session_key: head.session_key, session_id: "" },
        ...{
          message_id: head.message_id,
          engine: "echo",
          fallback_from: "",
          instruction: "x",
          created_at: now,
        },
      };
      const gated = work?.passed === null && work.gate !== "null";
      const kind = this.model.begin(head.id, execution.execution_id);
      const claim = async (one: NewExecution) =>
        (await this.#db.write([
          ...(gated ? startGateRun(one) : startRun(one, head.type)),
          insertReservation(one.execution_id, [], NOTHING),
        ])).won;
      const won = await claim(execution);
      expect(won ? gated ? "gate" : "run" : null, label).toBe(kind);
      if (!won) continue;
      expect(await claim({ ...execution, execution_id: createId() }), "a second claim").toBe(false);
      this.#claims.set(execution.execution_id, execution);
      if (kind === "run") await this.#db.write(startExecution(execution.execution_id, now));
    }
  }

  async endOne(label: string): Promise<void> {
    const open = [...this.model.open];
    if (open.length === 0) return;
    // Sometimes prefers work that must end, as the service does.
    const unwanted = open.filter(([, one]) => one.kind === "gate" ? !this.model.isWanted(one) : one.marked);
    const [id, one] = unwanted.length > 0 && this.chance() < 0.5 ? this.pick(unwanted) : this.pick(open);
    if (one.kind === "run") {
      const how = one.marked && this.chance() < 0.7
        ? "cancelled"
        : this.pick(["completed", "completed", "failed"] as const);
      return await this.#endRun(id, how);
    }
    const wanted = await isGateWanted(this.#db, one.task, id);
    expect(wanted, label).toBe(this.model.isWanted(one));
    await this.#endGate(
      id,
      wanted ? this.pick(["pass", "pass", "skip", "fail", "again"] as const) : "replaced",
    );
  }

  async #endGate(id: string, how: GateEnd): Promise<void> {
    const now = this.clock.now();
    const execution = this.#claims.get(id) as NewExecution;
    const verdict: Partial<Record<GateEnd, GateVerdict>> = {
      skip: { kind: "skip", exit: 1 },
      fail: { kind: "fail", exit: 2, error: "exit code 2" },
      replaced: { kind: "replaced" },
      again: { kind: "again" },
    };
    const task = await findTask(this.#db, execution.task_id);
    const statements = how === "pass"
      ? startGatedRun(execution, now)
      : buildGateEnd(execution, verdict[how] as GateVerdict, task, RULES, now);
    await storeGateEnd(this.#db, execution, statements, now);
    this.model.endGate(id, how, now);
    // The service would start its run immediately.
    if (this.model.open.has(id)) await this.#db.write(startExecution(id, now));
  }

  async #endRun(id: string, how: RunEnd): Promise<void> {
    const now = this.clock.now();
    const execution = this.#claims.get(id) as NewExecution;
    const end: ExecutionEnd = {
      status: how === "completed" ? "completed" : "failed",
      error: how === "stopped" ? STOPPED : how,
      failure: FAILURE[how],
      ...{ session_id: "", result: "", exit_code: null, usage: USAGE },
    };
    const attempt = this.model.open.get(id)?.attempt ?? 0;
    const statements = endRun(
      { ...execution, attempt },
      end,
      await findTask(this.#db, execution.task_id),
      RULES,
      now,
    );
    expect((await this.#db.write(statements)).won).toBe(true);
    expect((await this.#db.write(statements)).won, "a second outcome").toBe(false);
    this.model.endRun(id, how, now);
  }

  // Ends the run or the gate that the API interrupts.
  async #interrupted(id: string): Promise<void> {
    const one = this.model.open.get(id);
    if (one?.kind === "run") await this.#endRun(id, "cancelled");
    if (one?.kind === "gate") await this.#endGate(id, "replaced");
  }

  async cancelRun(id: string): Promise<void> {
    this.model.mark(id);
    await this.api.execution.cancel(CALL, id);
  }

  // Restarts the service after a crash with everything in progress.
  async kill(): Promise<void> {
    const { wakeups } = this.#app.server.parts;
    await this.#scheduler?.stop();
    const known = { waits: new HumanWaits(this.clock), steps: new RecentActivity(), running: () => [] };
    await new Rescuer({ db: this.#db, clock: this.clock, wakeups, rules: RULES, ...known }).rescue();
    const now = this.clock.now();
    for (const [id, one] of [...this.model.open]) {
      const cancelled = one.marked || this.model.of(one.task).status === "cancelled";
      if (one.kind === "gate") this.model.endGate(id, "lost", now);
      else this.model.endRun(id, cancelled ? "cancelled" : "lost", now);
    }
    this.#startScheduler();
  }

  async stop(): Promise<void> {
    await this.#scheduler?.stop();
    for (const [id, one] of [...this.model.open]) {
      if (one.kind === "gate") await this.#endGate(id, this.model.isWanted(one) ? "again" : "replaced");
      else await this.#endRun(id, one.marked ? "cancelled" : "stopped");
    }
    this.#startScheduler();
  }

  // Two rounds of the scheduler: queued times fire in the first, and the second skips the times that fall due after them.
  async look(label: string): Promise<void> {
    const scheduler = this.#scheduler as Stage;
    for (let look = 0; look < 2; look++) {
      const { rounds } = scheduler;
      scheduler.wake();
      while (scheduler.rounds <= rounds || !scheduler.idle) {
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
    }
    const replaced = this.model.tick(this.clock.now());
    expect(this.#interruptedRuns.splice(0).sort(), label).toEqual(replaced.sort());
  }

  async agree(label: string): Promise<void> {
    const rows = await this.#db.read(
      `select id, status, paused, attempt, run_count, run_no, next_run_at, due_at, queued_at, runs_ended, failures_in_row,
        last_status
      from task
      order by id`,
    );
    const expected = [...this.model.tasks].map(([id, task]) => ({
      id,
      status: task.status,
      paused: task.paused ? 1 : 0,
      attempt: task.attempt,
      run_count: task.runs,
      run_no: task.runNo,
      next_run_at: task.nextAt,
      due_at: task.dueAt,
      queued_at: task.queuedAt,
      runs_ended: task.runsEnded,
      failures_in_row: task.failures,
      last_status: task.last,
    })).sort((a, b) => a.id < b.id ? -1 : 1);
    expect(rows.map((row) => ({ ...row })), label).toEqual(expected);
    const firings = await this.#db.read(
      `select task_id, run_no, status, gate_exit, ended_at is not null as ended
      from occurrence
      order by task_id, run_no`,
    );
    const wanted = [...this.model.tasks].flatMap(([task_id, { type, firings }]) =>
      (type === "immediate" ? [] : [...firings]).map(([run_no, { status, gateExit }]) => ({
        ...{ task_id, run_no, status, gate_exit: gateExit },
        ended: ["pending", "gating", "running"].includes(status) ? 0 : 1,
      }))
    ).sort((a, b) => a.task_id < b.task_id ? -1 : a.task_id > b.task_id ? 1 : a.run_no - b.run_no);
    expect(firings.map((row) => ({ ...row })), label).toEqual(wanted);
    const reserved = await this.#db.read<{ execution_id: string }>("select execution_id from reservation");
    expect(reserved.map(({ execution_id }) => execution_id).sort(), label).toEqual(
      [...this.model.open.keys()].sort(),
    );
    await expectCounters(this.#db);
  }
}
