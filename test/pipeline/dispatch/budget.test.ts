import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createRandom } from "../../harness/model/schedule.ts";
import { waitUntil } from "../../harness/wait.ts";

const SEEDS = Number(Deno.env.get("SVC_TEST_SEEDS") ?? 1);
const HOUR_MS = 3_600_000;

function give(app: App, worker_id: string, instruction: string, message_id = "script") {
  return app.call("POST /api/tasks", { message_id, worker_id, instruction, type: "immediate" });
}

function held(app: App, id: string) {
  return waitUntil(`the task ${id} is held`, async () => {
    app.server.dispatcher.stage.wake();
    return (await app.call(`GET /api/tasks/${id}`)).held_by !== null;
  });
}

describe("a budget of runs (contract 14)", () => {
  it("blocks further runs with a reason, and releases them when the period ends", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const budget = await app.call("POST /api/budgets", { name: "Few", unit: "runs", limit: 2, period: "5h" });
    expect(budget).toMatchObject({
      used: 0,
      reserved: 0,
      state: "ok",
      resets_at: null,
      soft: 80,
      action: "hold",
    });
    await give(app, ada.id, "one");
    await app.settle();
    clock.advance(HOUR_MS);
    await give(app, ada.id, "two");
    await app.settle();
    const third = await give(app, ada.id, "three");
    await held(app, third.id);
    const until = clock.now() + 4 * HOUR_MS;
    const task = await app.call(`GET /api/tasks/${third.id}`);
    expect(task).toMatchObject({
      status: "pending",
      held_by: { kind: "budget", id: budget.id, until },
      reason: expect.stringMatching(/^the budget "Few" is used up: 2 of 2 runs \(5h\); resumes at 2026-/),
    });
    expect(await app.call(`GET /api/budgets/${budget.id}`)).toMatchObject({
      used: 2,
      reserved: 0,
      state: "hard",
      resets_at: until,
    });
    clock.advance(4 * HOUR_MS - 1);
    await app.settle();
    expect((await app.call(`GET /api/tasks/${third.id}`)).status).toBe("pending");
    clock.advance(1);
    await waitUntil(
      "the third runs",
      async () => (await app.call(`GET /api/tasks/${third.id}`)).status === "completed",
    );
    expect(await app.call(`GET /api/tasks/${third.id}`)).toMatchObject({ held_by: null, reason: "" });
  });

  it("of a department does not block a worker who has left it", async () => {
    await using app = await openApp();
    const department = await app.call("POST /api/departments", { name: "News" });
    const [ada, bob] = await Promise.all(
      ["Ada", "Bob"].map((name) => app.call("POST /api/workers", { name, departments: ["News"] })),
    );
    const target = `department:${department.id}`;
    await app.call("POST /api/budgets", { name: "None", target, unit: "runs", limit: 0, period: "5h" });
    await held(app, (await give(app, ada.id, "one")).id);
    const { id } = await give(app, bob.id, "two");
    await held(app, id);
    await app.call(`PUT /api/workers/${bob.id}`, { departments: [] });
    await app.until("task.completed");
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({ status: "completed", held_by: null });
  });

  it("is reported as used up after the first report could not be stored", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/budgets", { name: "One", unit: "runs", limit: 1, period: "5h" });
    const write = app.db.write.bind(app.db);
    let full = true;
    app.db.write = (statements) => {
      if (!full || !statements.some(({ sql }) => sql.includes("hard_notified_at = ?"))) {
        return write(statements);
      }
      full = false;
      return Promise.reject(new Error("the disk is full"));
    };
    await give(app, ada.id, "one");
    await app.until("budget.hard");
  });
});

describe("a budget of 0 (contract 14)", () => {
  it("blocks everything immediately, until a change or a lift", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const none = { name: "None", target: "worker:Ada", unit: "minutes", limit: 0, period: "month" };
    const { id } = await app.call("POST /api/budgets", none);
    await app.until("budget.hard");
    const task = await give(app, ada.id, "one");
    await held(app, task.id);
    expect((await app.call(`GET /api/tasks/${task.id}`)).held_by).toMatchObject({
      kind: "budget",
      id,
      until: null,
    });
    clock.advance(40 * 24 * HOUR_MS);
    await app.settle();
    expect((await app.call(`GET /api/tasks/${task.id}`)).status).toBe("pending");
    await app.call(`POST /api/budgets/${id}/lift`, { for_ms: HOUR_MS });
    await waitUntil(
      "it runs",
      async () => (await app.call(`GET /api/tasks/${task.id}`)).status === "completed",
    );
  });
});

const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;

function openClaude(clock: TestClock, more: Record<string, unknown> = {}): Promise<App> {
  return openApp({
    clock,
    config: {
      engines: {
        default: "claude",
        claude: { command: FAKE_CLAUDE, env: { ANTHROPIC_API_KEY: "x" }, ...more },
      },
    },
  });
}

describe("a budget that stops (contract 14)", () => {
  it("ends a run during its work when the reported usage reaches the limit [BUD-1]", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openClaude(clock);
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const budget = await app.call("POST /api/budgets", {
      name: "Ada's tokens",
      target: "worker:Ada",
      unit: "tokens",
      limit: 600,
      period: "24h",
      action: "stop",
    });
    expect(budget.target).toBe(`worker:${ada.id}`);
    const task = await give(app, ada.id, "spend 6");
    await app.until("task.failed");
    const [execution] = await app.call("GET /api/executions");
    expect(execution).toMatchObject({
      status: "failed",
      failure: "budget",
      error: expect.stringMatching(/^the budget "Ada's tokens" is used up: \d+ of 600 tokens \(24h\)$/),
    });
    const used = execution.usage.input_tokens + execution.usage.output_tokens;
    expect(used).toBeGreaterThanOrEqual(600);
    expect(await app.call(`GET /api/budgets/${budget.id}`)).toMatchObject({
      used,
      reserved: 0,
      state: "hard",
    });
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({ status: "failed" });
    await app.until("budget.hard");
    const told = await app.db.read("select kind from journal where kind like 'budget.%' order by seq");
    expect(told.map(({ kind }) => kind).filter((kind) => kind === "budget.hard")).toEqual(["budget.hard"]);
  });

  it("counts the usage of every round of a checked run", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openClaude(clock);
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const more = { unit: "tokens", limit: 600, period: "24h", action: "stop" };
    await app.call("POST /api/budgets", { name: "Tokens", ...more });
    // The first round ends after 300 tokens, the second waits after 450 more.
    await Deno.writeTextFile(join(ada.work_dir, "free"), "");
    const verify = { command: ["sh", "-c", "rm free; exit 1"] };
    const body = { message_id: "script", worker_id: ada.id, type: "immediate" };
    await app.call("POST /api/tasks", { ...body, instruction: "spend 2", verify });
    await app.until("task.failed", 1, 60_000);
    const [execution] = await app.call("GET /api/executions");
    expect(execution).toMatchObject({ status: "failed", failure: "budget" });
    expect(execution.error).toMatch(/^the budget "Tokens" is used up: (600|750) of 600 tokens/);
  });

  it("ends a run when its minutes are used up, without a report of the engine", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openClaude(clock);
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/budgets", {
      name: "Time",
      unit: "minutes",
      limit: 10,
      period: "24h",
      action: "stop",
    });
    await give(app, ada.id, "hang");
    await app.until("execution.started");
    clock.advance(10 * 60_000 - 1);
    await app.server.stages.find(({ name }) => name === "budgets")?.wake();
    expect(await app.call("GET /api/executions?status=running")).toHaveLength(1);
    clock.advance(1);
    await app.until("task.failed");
    const [execution] = await app.call("GET /api/executions");
    expect(execution).toMatchObject({ failure: "budget" });
  });
});

describe("a work directory with blocked tasks [BUD-2]", () => {
  it("runs the unblocked tasks in order, whatever precedes them [BUD-2]", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await tryLane(seed);
  }, 120_000);
});

// Gives a paused worker tasks of six conversations, some with a budget of runs, and resumes it.
async function tryLane(seed: number): Promise<void> {
  const chance = createRandom(seed);
  await using app = await openApp({ inMemory: true });
  const ada = await app.call("POST /api/workers", { name: "Ada", paused: true });
  const limits = new Map<string, number>();
  for (const session of ["a", "b", "c", "d"]) {
    const limit = Math.floor(chance() * 3);
    limits.set(session, limit);
    const target = `session:cli:${session}`;
    await app.call("POST /api/budgets", { name: session, target, unit: "runs", limit, period: "total" });
  }
  const expected: string[] = [];
  const waiting: string[] = [];
  for (let i = 0; i < 40; i++) {
    const session = "abcdef"[Math.floor(chance() * 6)] ?? "f";
    const task = await give(app, ada.id, "x", session);
    const left = limits.get(session) ?? Infinity;
    limits.set(session, left - 1);
    if (left > 0) expected.push(task.id);
    else waiting.push(task.id);
  }
  await app.call(`PUT /api/workers/${ada.id}`, { paused: false });
  await app.settle();
  const ran = await app.db.read("select task_id from execution order by id");
  expect(ran.map(({ task_id }) => task_id), `seed ${seed}`).toEqual(expected);
  const held = await app.db.read(
    "select id from task where status = 'pending' and held like 'budget:%' order by id",
  );
  expect(held.map(({ id }) => id), `seed ${seed}`).toEqual(waiting);
}
