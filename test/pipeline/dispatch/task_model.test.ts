import { describe, expect, it } from "vitest";
import type { Call } from "../../../src/api/call/call.ts";
import { parseJson } from "../../../src/domain/call/json.ts";
import type { Server } from "../../../src/boot/server.ts";
import { findNextOccurrence } from "../../../src/domain/work/cron.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { type Task } from "../../../src/domain/work/task.ts";
import { getRetryDelayMs } from "../../../src/domain/work/retry_delay.ts";
import { endRun, STOPPED } from "../../../src/run/ending.ts";
import { createId } from "../../../src/base/id.ts";
import { type ExecutionEnd, insertExecution, startExecution } from "../../../src/store/work/execution.ts";
import { findTask } from "../../../src/store/work/task.ts";
import { claimTask } from "../../../src/store/work/task_transitions.ts";
import { listNextTasks } from "../../../src/store/work/task_queue.ts";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { expectCounters } from "../../harness/model/counters.ts";
import { createRandom } from "../../harness/model/schedule.ts";

// CI runs all fifty seeds. A few of them find most faults in a fifth of the time.
const SEEDS = Number(Deno.env.get("SVC_TEST_SEEDS") ?? 1);
const OPERATIONS = 2_000;
const MAX_ATTEMPTS = 3;
const CRON = "*/10 * * * *";
const RULES = { defaultZone: "UTC", maxAttempts: MAX_ATTEMPTS };
const CALL: Call = {
  caller: { subject: "user:test", scopes: ["*:*"], run: null, person: null },
  findAccessEnd: () => Promise.resolve(null),
  idempotency: null,
};
const USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };

/** The expected state of the task. */
interface Expected {
  type: Task["type"];
  status: Task["status"];
  worker: string;
  session: string;
  attempt: number;
  runs: number;
  nextAt: number | null;
  dueAt: number | null;
  /** The run in progress, if any. */
  run: string | null;
  /** Attempt of the task at the start of the run. */
  runAttempt: number;
}

/** The state machine of contract 3 as a readable table, which the database must match. */
class Model {
  readonly tasks = new Map<string, Expected>();

  cancel(id: string): boolean {
    const task = this.#get(id);
    const may = task.status === "pending" || task.status === "scheduled" ||
      task.status === "running" && task.type === "scheduled";
    if (may) this.#end(task, "cancelled");
    return may;
  }

  runNow(id: string, now: number): boolean {
    const task = this.#get(id);
    // A repeated request returns the requested run that has not started (contract 8.9).
    if (task.status === "pending" && task.type !== "immediate") return true;
    if (task.status !== "scheduled") return false;
    task.status = "pending";
    task.dueAt = now;
    task.attempt = 0;
    if (task.type === "countdown") task.nextAt = null;
    return true;
  }

  claim(id: string, executionId: string): void {
    const task = this.#get(id);
    task.status = "running";
    task.attempt++;
    task.runs++;
    task.run = executionId;
    task.runAttempt = task.attempt;
  }

  end(id: string, how: "completed" | "failed" | "lost" | "stopped" | "cancelled", now: number): void {
    const task = this.#get(id);
    task.run = null;
    // A task that was cancelled meanwhile stays cancelled, whatever the outcome.
    if (task.status !== "running") return;
    if (how === "stopped") {
      task.status = "pending";
      task.attempt--;
      task.runs--;
    } else if (how === "lost" && task.runAttempt < MAX_ATTEMPTS) {
      task.status = "pending";
      task.dueAt = now + getRetryDelayMs(task.runAttempt);
    } else if (task.type === "scheduled") {
      task.status = "scheduled";
      task.attempt = 0;
      task.dueAt = null;
      if (task.nextAt === null || task.nextAt <= now) task.nextAt = findNextOccurrence(CRON, "UTC", now);
    } else {
      this.#end(task, how === "completed" ? "completed" : how === "cancelled" ? "cancelled" : "failed");
    }
  }

  /** Moves the model's time to `now`. */
  tick(now: number): void {
    for (const task of this.tasks.values()) {
      if (task.nextAt === null || task.nextAt > now) continue;
      if (task.type === "countdown") {
        task.dueAt = task.nextAt;
        task.nextAt = null;
        task.status = "pending";
        continue;
      }
      const latest = Math.floor(now / 600_000) * 600_000;
      if (task.status === "scheduled" && now - latest <= 3_600_000) {
        task.status = "pending";
        task.dueAt = latest;
        task.attempt = 0;
      }
      task.nextAt = findNextOccurrence(CRON, "UTC", now);
    }
  }

  endAll(which: (task: Expected) => boolean): number {
    let ended = 0;
    for (const task of this.tasks.values()) {
      if (!which(task) || !["pending", "scheduled", "running"].includes(task.status)) continue;
      this.#end(task, "cancelled");
      ended++;
    }
    return ended;
  }

  #end(task: Expected, status: Expected["status"]): void {
    task.status = status;
    task.nextAt = null;
    task.dueAt = null;
  }

  #get(id: string): Expected {
    return this.tasks.get(id) as Expected;
  }
}

describe("the state machine of a task equals its model, also with repeated outcomes [DSP-14, DSP-2]", () => {
  it(`over ${SEEDS} seeds of ${OPERATIONS} random operations each`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await compare(seed);
  }, 720_000);
});

async function compare(seed: number): Promise<void> {
  const clock = new TestClock("2026-01-05T08:00:00Z");
  await using app = await openApp({ clock, inMemory: true });
  const { server } = app;
  // The stages are stopped: this test does their work step by step.
  const scheduler = app.server.stages.find((stage) => stage.name === "scheduler");
  await Promise.all(app.server.stages.filter((stage) => stage !== scheduler).map((stage) => stage.stop()));
  const chance = createRandom(seed);
  const pick = <T>(list: T[]): T | undefined => list[Math.floor(chance() * list.length)];
  const model = new Model();
  const open = new Map<string, string>();
  server.parts.interruptRun = (executionId) => finish(server, model, open, executionId, "cancelled");
  let workers = [await makeWorker(server), await makeWorker(server), await makeWorker(server)];

  for (let step = 0; step < OPERATIONS; step++) {
    const dice = chance();
    const now = clock.now();
    const label = `seed ${seed} step ${step}`;
    const id = pick([...model.tasks.keys()]);
    if (dice < 0.25 || id === undefined) {
      await create(server, model, pick(workers) ?? "", pick(["one", "two"]) ?? "", chance());
    } else if (dice < 0.33) {
      expect(await done(() => server.api.task.cancel(CALL, id)), label).toBe(model.cancel(id));
    } else if (dice < 0.40) {
      expect(await done(() => server.api.task.run(CALL, id)), label).toBe(model.runNow(id, now));
    } else if (dice < 0.62) {
      await dispatch(server, model, open, label);
    } else if (dice < 0.82) {
      const executionId = pick([...open.keys()]);
      const how = pick(["completed", "completed", "failed", "lost", "lost", "stopped"] as const) ??
        "completed";
      if (executionId !== undefined) await finish(server, model, open, executionId, how);
    } else if (dice < 0.85) {
      const executionId = pick([...open.keys()]);
      if (executionId !== undefined) await cancelRun(server, model, open, executionId);
    } else if (dice < 0.865) {
      const session = pick(["one", "two"]) ?? "";
      const expected = model.endAll((task) => task.session === `cli:${session}`);
      expect(parseJson((await server.api.session.clear(CALL, `cli:${session}`)).json).cancelled_tasks, label)
        .toBe(expected);
    } else if (dice < 0.87) {
      const worker = pick(workers) ?? "";
      model.endAll((task) => task.worker === worker);
      await server.api.worker.delete(CALL, worker, false);
      workers = [...workers.filter((one) => one !== worker), await makeWorker(server)];
    } else {
      clock.advance(pick([500, 1_000, 4_000, 16_000, 60_000, 600_000, 7_200_000]) ?? 0);
      const rounds = scheduler?.rounds ?? 0;
      scheduler?.wake();
      while ((scheduler?.rounds ?? 0) <= rounds || !scheduler?.idle) {
        await Promise.resolve().then(() => new Promise((resolve) => setTimeout(resolve, 0)));
      }
      model.tick(clock.now());
    }
    if (step % 50 === 0 || step === OPERATIONS - 1) await agree(server, model, label);
  }
}

async function makeWorker(server: Server): Promise<string> {
  const input = {
    name: "w",
    description: "",
    memory: "",
    constraints: "",
    work_dir: "/tmp",
    engine: "",
    engine_args: {},
    departments: [],
    scopes: [],
    verify: null,
    runs_on: [],
    paused: false,
  };
  return parseJson((await server.api.worker.create(CALL, input)).json).id;
}

async function create(
  server: Server,
  model: Model,
  worker: string,
  message: string,
  dice: number,
): Promise<void> {
  const now = server.parts.clock.now();
  const type = dice < 0.4 ? "immediate" : dice < 0.7 ? "countdown" : "scheduled";
  const body = {
    message_id: message,
    worker_id: worker,
    instruction: "x",
    type,
    ...(type === "countdown" ? { scheduled_at: now + 5_000 + Math.floor(dice * 100_000) } : {}),
    ...(type === "scheduled" ? { cron: CRON } : {}),
  } as const;
  const task = parseJson((await server.api.task.create(CALL, body)).json) as Task;
  model.tasks.set(task.id, {
    type,
    status: type === "immediate" ? "pending" : "scheduled",
    worker,
    session: `cli:${message}`,
    attempt: 0,
    runs: 0,
    nextAt: type === "countdown"
      ? body.scheduled_at ?? null
      : type === "scheduled"
      ? findNextOccurrence(CRON, "UTC", now)
      : null,
    dueAt: type === "immediate" ? now : null,
    run: null,
    runAttempt: 0,
  });
}

/** Claims the next task of each directory, as the dispatcher does. The model names the expected tasks. */
async function dispatch(
  server: Server,
  model: Model,
  open: Map<string, string>,
  label: string,
): Promise<void> {
  const now = server.parts.clock.now();
  const { heads } = await listNextTasks(server.parts.db, now);
  const expected = new Map<string, [string, Expected]>();
  for (const [id, task] of model.tasks) {
    if (task.status !== "pending" || (task.dueAt ?? Infinity) > now) continue;
    const head = expected.get(task.worker);
    const earlier = head === undefined || (task.dueAt ?? 0) < (head[1].dueAt ?? 0) ||
      task.dueAt === head[1].dueAt && id < head[0];
    if (earlier) expected.set(task.worker, [id, task]);
  }
  expect(heads.map((head) => head.id).sort(), label).toEqual([...expected.values()].map(([id]) => id).sort());
  for (const head of heads) {
    const executionId = createId();
    const { won } = await server.parts.db.write([
      ...claimTask(head.id, executionId, now),
      insertExecution({
        execution_id: executionId,
        worker_id: head.worker_id,
        worker_name: head.worker_name,
        task_id: head.id,
        message_id: head.message_id,
        session_key: head.session_key,
        session_id: "",
        engine: "echo",
        instruction: "x",
        attempt: head.attempt + 1,
        run_id: "",
        created_at: now,
      }),
      ...startExecution(executionId, now),
    ]);
    expect(won, label).toBe(true);
    expect((await server.parts.db.write(claimTask(head.id, createId(), now))).won, "a second claim").toBe(
      false,
    );
    model.claim(head.id, executionId);
    open.set(executionId, head.id);
  }
}

async function finish(
  server: Server,
  model: Model,
  open: Map<string, string>,
  executionId: string,
  how: "completed" | "failed" | "lost" | "stopped" | "cancelled",
): Promise<void> {
  const taskId = open.get(executionId);
  if (taskId === undefined) return;
  const now = server.parts.clock.now();
  const end: ExecutionEnd = {
    status: how === "completed" ? "completed" : "failed",
    session_id: "",
    result: "",
    error: how === "stopped" ? STOPPED : how,
    failure: how === "completed"
      ? ""
      : how === "failed"
      ? "exit_code"
      : how === "cancelled"
      ? "cancelled"
      : "server_lost",
    exit_code: null,
    usage: USAGE,
  };
  const task = await findTask(server.parts.db, taskId);
  const run = {
    execution_id: executionId,
    task_id: taskId,
    worker_id: task?.worker_id ?? "",
    worker_name: "w",
    session_key: task?.session_key ?? "",
    message_id: "m",
    attempt: model.tasks.get(taskId)?.runAttempt ?? 0,
  };
  expect((await server.parts.db.write(endRun(run, end, task, RULES, now))).won).toBe(true);
  expect((await server.parts.db.write(endRun(run, end, task, RULES, now))).won, "a second outcome").toBe(
    false,
  );
  open.delete(executionId);
  model.end(taskId, how, now);
}

async function cancelRun(
  server: Server,
  model: Model,
  open: Map<string, string>,
  executionId: string,
): Promise<void> {
  const task = model.tasks.get(open.get(executionId) ?? "");
  if (task?.status === "running" && task.type !== "scheduled") {
    task.status = "cancelled";
    task.nextAt = null;
    task.dueAt = null;
  }
  await server.api.execution.cancel(CALL, executionId);
}

async function done(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "conflict") return false;
    throw error;
  }
}

async function agree(server: Server, model: Model, label: string): Promise<void> {
  const rows = await server.parts.db.read<{ id: string }>(
    "select id, status, attempt, run_count, next_run_at, due_at from task order by id",
  );
  const expected = [...model.tasks].map(([id, task]) => ({
    id,
    status: task.status,
    attempt: task.attempt,
    run_count: task.runs,
    next_run_at: task.nextAt,
    // A running task keeps its old position in the queue for an orderly stop.
    due_at: task.dueAt,
  })).sort((a, b) => a.id < b.id ? -1 : 1);
  const seen = rows.map((row) => ({ ...row }));
  expect(seen, label).toEqual(expected);
  const broken = await server.parts.db.read(
    `select task.id from task where status = 'running' and (
      select count(*) from execution where execution.task_id = task.id and execution.status in ('pending', 'running')) <> 1`,
  );
  expect(broken, label).toEqual([]);
  await expectCounters(server.parts.db);
}
