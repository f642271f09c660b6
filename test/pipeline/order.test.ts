import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { retryDelayMs } from "../../src/domain/task_plan.ts";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { endRun } from "../../src/run/ending.ts";
import { USAGE_UNKNOWN } from "../../src/domain/execution.ts";
import { listOpenExecutions } from "../../src/store/execution.ts";
import { findTask } from "../../src/store/task.ts";
import { fakeEngines, overlap, readLedger } from "../harness/agents.ts";
import { type App, openApp } from "../harness/app.ts";
import { TestClock } from "../harness/clock.ts";
import { patient } from "../harness/patience.ts";
import { tempDir } from "../harness/process.ts";
import { random } from "../harness/schedule.ts";
import { ctl } from "../harness/terminal.ts";

// The long run: SVC_TEST_ORDER=10.
const SCALE = Number(Deno.env.get("SVC_TEST_ORDER") ?? 1);

async function give(app: App, worker_id: string, instruction: string): Promise<string> {
  const body = { message_id: "script", worker_id, instruction, type: "immediate" };
  return (await app.call("POST /api/tasks", body)).id;
}

describe("dispatch", () => {
  it("an outcome that comes after the run was taken away changes nothing (reliability DSP-2)", async () => {
    await using app = await openApp({ config: { engines: fakeEngines(), limits: { max_attempts: 3 } } });
    const { db } = app.server.parts;
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "sleep 1" });
    await app.until("execution.started");
    expect(await takeAway(app)).toBe(1);
    await app.until("execution.started", 2);
    await app.settle();
    expect(await app.call("GET /api/executions")).toMatchObject([
      { attempt: 2, status: "completed", result: "slept 1" },
      { attempt: 1, status: "failed", failure: "server_lost", exit_code: null },
    ]);
    expect(await db.read("select status, attempt from task")).toMatchObject([{
      status: "completed",
      attempt: 2,
    }]);
    const said = await app.call(`GET /api/local/sessions/${session.id}/messages`);
    expect(said.map((one: { content: string }) => one.content).slice(1)).toEqual(["slept 1"]);
    const ends = await db.read(
      "select kind from journal where kind in ('execution.completed', 'execution.failed')",
    );
    expect(ends).toHaveLength(2);
  });

  it(
    "an idle service starts a task at once and does not wait for a poll (reliability DSP-5; figures: make bench ARGS=tasks)",
    async () => {
      await using folder = await tempDir();
      const ledger = join(folder.path, "ledger");
      await using app = await openApp({ config: { engines: fakeEngines({ ledger }) } });
      const worker = await app.call("POST /api/workers", { name: "Ada" });
      const waits: number[] = [];
      for (let i = 0; i < 50 * SCALE; i++) {
        const id = await give(app, worker.id, "ok");
        await app.settle();
        const { created_at } = await app.call(`GET /api/tasks/${id}`);
        const start = (await readLedger(ledger)).find((line) => line.task === id && line.word === "start");
        waits.push((start?.at ?? NaN) - created_at);
      }
      waits.sort((a, b) => a - b);
      // From the commit to the program's first output. The limit allows for a loaded machine, but not for a poll of a second.
      expect(waits[Math.floor(waits.length / 2)]).toBeLessThan(patient(100));
      expect(waits[Math.floor(waits.length * 0.9)]).toBeLessThan(patient(500));
    },
    60_000 * SCALE,
  );

  it(
    "keeps to its caps, and a short queue beside long ones is done in its own time (reliability DSP-9)",
    async () => {
      await using folder = await tempDir();
      const ledger = join(folder.path, "ledger");
      await using app = await openApp({
        config: { engines: fakeEngines({ ledger }), limits: { max_concurrent_runs: 4 } },
      });
      const counts = [50 * SCALE, 20 * SCALE, 5];
      const own: string[][] = [];
      for (const count of counts) {
        const { id } = await app.call("POST /api/workers", { name: `w${count}` });
        own.push(await Promise.all(Array.from({ length: count }, () => give(app, id, "sleep 0.02"))));
      }
      await app.settle(60_000 * SCALE);
      const lines = await readLedger(ledger);
      expect(lines.filter((line) => line.word === "start")).toHaveLength(counts.reduce((a, b) => a + b));
      expect(overlap(lines)).toBeLessThanOrEqual(3);
      expect(overlap(lines)).toBeGreaterThan(1);
      const end = (tasks: string[]) =>
        Math.max(...lines.filter((line) => tasks.includes(line.task)).map((line) => line.at));
      const start = Math.min(...lines.filter((line) => own[2]?.includes(line.task)).map((line) => line.at));
      for (const tasks of own) expect(overlap(lines.filter((line) => tasks.includes(line.task)))).toBe(1);
      const [longest = 0, , shortest = 0] = own.map((tasks) => end(tasks) - start);
      expect(shortest).toBeLessThan((longest / (50 * SCALE)) * 5 * 2 + patient(200));
    },
    60_000 * SCALE,
  );

  it(
    "starts the messages of one conversation and worker in the order in which they came, however long each takes (reliability DSP-10)",
    async () => {
      await using app = await openApp({ config: { engines: fakeEngines() } });
      const chance = random(10);
      const ada = await app.call("POST /api/workers", { name: "Ada" });
      const { id } = await app.call("POST /api/local/sessions", { worker_id: ada.id });
      const texts = Array.from(
        { length: 40 * SCALE },
        (_, index) => `sleep ${(chance() * 0.04 + index / 1e6).toFixed(6)}`,
      );
      for (const [index, content] of texts.entries()) {
        await app.call(`POST /api/local/sessions/${id}/messages`, { content });
        await app.until("message.feeding", index + 1);
      }
      await app.settle(60_000 * SCALE);
      const ran = await app.db.read<{ instruction: string }>(
        "select instruction from execution order by started_at, id",
      );
      expect(ran.map((row) => row.instruction)).toEqual(texts);
    },
    60_000 * SCALE,
  );

  it("session clear --force ends the whole tree of a stubborn agent and of what escaped from it (reliability DSP-12, CHD-1, CHD-2)", async () => {
    await using app = await openApp({
      config: { engines: fakeEngines(), limits: { stop_grace: "200ms", max_concurrent_runs: 2 } },
    });
    const one = await app.call("POST /api/workers", { name: "Ada" });
    const two = await app.call("POST /api/workers", { name: "Bob" });
    const tasks = [
      await give(app, one.id, "ignore-term"),
      await give(app, two.id, "setsid-escape-and-stay"),
      await give(app, one.id, "ok"),
    ];
    await app.until("execution.started", 2);
    const rows = await app.db.read<{ run_id: string }>("select run_id from execution");
    const runs = new Set(rows.map((row) => row.run_id));
    while ((await findMarked(runs)).length < 8) await new Promise((resolve) => setTimeout(resolve, 20));
    const started = performance.now();
    const called = await ctl(app, ["session", "clear", "--session-key", "cli:script", "--force"]);
    expect([called.code, called.err]).toEqual([0, ""]);
    expect(performance.now() - started).toBeLessThan(2_000 + 200 + 1_500);
    expect(await findMarked(runs)).toEqual([]);
    for (const id of tasks) expect((await app.call(`GET /api/tasks/${id}`)).status).toBe("cancelled");
    expect(await app.call("GET /api/executions")).toMatchObject([{ failure: "cancelled" }, {
      failure: "cancelled",
    }]);
  });

  it("tries only lost runs again, later each time, up to a limit (reliability DSP-13)", async () => {
    for (let attempt = 1; attempt < 200; attempt++) {
      const delay = retryDelayMs(attempt);
      expect(delay).toBe([1_000, 4_000, 16_000][Math.min(attempt, 3) - 1]);
    }
    const clock = new TestClock();
    await using app = await openApp({
      clock,
      config: {
        engines: { ...fakeEngines(), none: { kind: "command", command: "/no/such/program" } },
        limits: { max_attempts: 3 },
      },
    });
    const { db } = app.server.parts;
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const gone = await app.call("POST /api/workers", { name: "Bob", engine: "none" });
    for (let i = 0; i < 5; i++) await give(app, worker.id, "exit 1");
    for (let i = 0; i < 5; i++) await give(app, gone.id, "ok");
    await app.settle();
    expect(await db.read("select distinct status, attempt from task")).toMatchObject([{
      status: "failed",
      attempt: 1,
    }]);
    expect(await app.call("GET /api/executions")).toHaveLength(10);

    const lost = await give(app, worker.id, "sleep 60");
    for (const [attempt, delayMs] of [[1, 1_000], [2, 4_000]] as const) {
      await app.until("execution.started", 5 + attempt);
      expect(await takeAway(app)).toBe(1);
      await endPrograms(app);
      const due = await db.first<{ due_at: number }>(
        "select due_at from task where id = ? and status = 'pending'",
        [lost],
      );
      expect([attempt, (due?.due_at ?? 0) - clock.now()]).toEqual([attempt, delayMs]);
      clock.advance(delayMs - 1);
      await app.settle();
      expect((await app.call(`GET /api/tasks/${lost}`)).status).toBe("pending");
      clock.advance(1);
    }
    await app.until("execution.started", 8);
    expect(await takeAway(app)).toBe(1);
    await endPrograms(app);
    expect(await app.call(`GET /api/tasks/${lost}`)).toMatchObject({
      status: "failed",
      attempt: 3,
      reason: expect.stringMatching(/^server_lost/),
    });
  });

  it("does not spin when the wall clock jumps (reliability DSP-8)", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const schedule = {
      message_id: "m",
      worker_id: worker.id,
      instruction: "x",
      type: "scheduled",
      cron: "* * * * *",
    };
    await app.call("POST /api/tasks", schedule);
    for (const to of [clock.now() + 3_600_000, clock.now() - 3_600_000, Date.parse("2036-02-07T06:28:16Z")]) {
      clock.jump(to);
      for (const stage of app.server.stages) stage.wake();
      clock.advance(1_000);
      await app.settle();
      await settledFor(app, 50);
      const before = app.server.stages.map((stage) => stage.rounds);
      // No time passes for the service now, so no stage has a reason to run.
      await settledFor(app, 250);
      const turns = app.server.stages.map((stage, index) => stage.rounds - (before[index] ?? 0));
      expect([new Date(to).toISOString(), Math.max(...turns)]).toEqual([
        new Date(to).toISOString(),
        expect.any(Number),
      ]);
      expect(Math.max(...turns)).toBeLessThanOrEqual(2);
    }
    expect(await app.db.first("select count(*) as n from execution")).toMatchObject({
      n: expect.any(Number),
    });
    const minutes = await app.db.read<{ minute: number }>("select minute from occurrence");
    expect(new Set(minutes.map((row) => row.minute)).size).toBe(minutes.length);
  });
});

/** Takes every open run away, as a server does that believes them lost with another server; their programs continue. */
async function takeAway(app: App): Promise<number> {
  const { db, clock } = app.server.parts;
  const open = await listOpenExecutions(db, 0);
  const end = {
    status: "failed" as const,
    session_id: "",
    result: "",
    error: "taken away",
    failure: "server_lost" as const,
    exit_code: null,
    usage: USAGE_UNKNOWN,
  };
  const rules = { defaultZone: "UTC", maxAttempts: 3 };
  for (const run of open) {
    const task = await findTask(db, run.task_id);
    expect((await db.write(endRun(run, end, task, rules, clock.now()))).won).toBe(true);
  }
  return open.length;
}

/** Ends the programs of runs that were taken away; their outcomes come too late. */
async function endPrograms({ server: { executor } }: App): Promise<void> {
  await Promise.all(executor.running.map(({ execution_id }) => executor.interrupt(execution_id)));
}

async function settledFor(app: App, ms: number): Promise<void> {
  const bell = app.server.parts.bells.listen("nobody rings this");
  await bell.next(systemClock, ms);
  bell.close();
}
