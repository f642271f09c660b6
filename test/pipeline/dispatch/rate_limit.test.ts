import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LIMITED_RUNS_MAX } from "../../../src/domain/workers/rate_limit.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createTempDir } from "../../harness/service/process.ts";

const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;
const HOUR_MS = 3_600_000;

function openLimited(clock: TestClock, dataDir?: string): Promise<App> {
  return openApp({
    clock,
    ...(dataDir === undefined ? {} : { dataDir }),
    config: {
      engines: { default: "claude", claude: { command: FAKE_CLAUDE, env: { ANTHROPIC_API_KEY: "x" } } },
    },
  });
}

async function setUp(app: App, engine = "") {
  const worker = await app.call("POST /api/workers", { name: `Ada ${crypto.randomUUID()}`, engine });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const send = (content: string) => app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
  const tasks = () => app.call(`GET /api/tasks?worker_id=${worker.id}`);
  const messages = () => app.call(`GET /api/local/sessions/${session.id}/messages`);
  const free = () => Deno.writeTextFile(join(worker.work_dir, "free"), "");
  return { worker, session, send, tasks, messages, free };
}

describe("rate limits [DSP-13]", () => {
  it("block the engine: its tasks wait with a reason, others run, and then the session continues", async () => {
    await using folder = await createTempDir();
    const clock = new TestClock(Date.now());
    let reason = "";
    let limitedUntil = 0;
    let workerId = "";
    let sessionId = "";
    {
      await using app = await openLimited(clock, folder.path);
      const ada = await setUp(app);
      workerId = ada.worker.id;
      await ada.send("limit 3600");
      await app.until("task.requeued");
      const [task] = await ada.tasks();
      expect(task).toMatchObject({ status: "pending", attempt: 0, run_count: 1 });
      reason = task.reason;
      expect(reason).toMatch(/^claude is rate limited; resumes at 20\d\d-\d\d-\d\d \d\d:\d\d UTC$/);
      const [execution] = await app.call("GET /api/executions");
      expect(execution).toMatchObject({ status: "failed", failure: "rate_limited", attempt: 1 });
      sessionId = execution.session_id;
      expect((await ada.messages()).at(-1).content).toBe(`${ada.worker.name} has to wait: ${reason}.`);
      // New tasks for this engine also wait, and say so; another engine is not affected.
      const bob = await setUp(app, "claude");
      await bob.send("ok");
      const eve = await setUp(app, "echo");
      await eve.send("hello");
      await app.until("execution.completed");
      await app.until("task.created", 3);
      while ((await bob.tasks())[0].reason === "") await app.server.dispatcher.stage.wake();
      expect(await bob.tasks()).toMatchObject([{ status: "pending", reason, run_count: 0 }]);
      expect(await eve.tasks()).toMatchObject([{ status: "completed" }]);
      expect((await app.call("GET /api/system/overview")).limited_engines).toEqual([
        { engine: expect.any(String), until: expect.any(Number) },
      ]);
      const status = await app.call(`GET /api/workers/${bob.worker.id}/status`);
      expect(status).toMatchObject({ usable: false, detail: reason, pending: 1 });
      limitedUntil = status.limited_until;
      const minute = new Date(Math.ceil(limitedUntil / 60_000) * 60_000).toISOString().slice(0, 16);
      expect(reason).toContain(minute.replace("T", " "));
      await Deno.writeTextFile(join(bob.worker.work_dir, "free"), "");
      await ada.free();
    }
    // The limit survives a restart, and nothing starts too early.
    clock.jump(limitedUntil - 10_000);
    await using app = await openLimited(clock, folder.path);
    await app.server.dispatcher.stage.wake();
    expect(await app.call(`GET /api/tasks?worker_id=${workerId}`)).toMatchObject([{
      status: "pending",
      reason,
    }]);
    expect(await app.call("GET /api/executions?status=running,pending")).toEqual([]);
    clock.advance(10_000);
    await app.settle();
    const [execution] = await app.call(`GET /api/workers/${workerId}/executions`);
    expect(execution).toMatchObject({
      status: "completed",
      result: "through 1",
      session_id: sessionId,
      attempt: 1,
    });
    expect(await app.call(`GET /api/tasks?worker_id=${workerId}`)).toMatchObject([{
      status: "completed",
      reason: "",
    }]);
    expect(await app.db.read("select * from rate_limit")).toEqual([]);
  });

  it("without a time use back-off, and a successful run ends it", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openLimited(clock);
    const ada = await setUp(app);
    const waits: number[] = [];
    const wait = async (count: number) => {
      await app.until("engine.limited", count);
      const row = await app.db.first<{ until: number }>("select until from rate_limit");
      waits.push(((row?.until ?? 0) - clock.now()) / 60_000);
    };
    await ada.send("limit");
    await wait(1);
    clock.advance(60_000);
    await wait(2);
    await ada.free();
    clock.advance(4 * 60_000);
    await app.settle();
    expect(waits).toEqual([1, 4]);
    // The prompt mentions the interruption, and repeats nothing that the session has.
    const prompt = await Deno.readTextFile(join(ada.worker.work_dir, "prompt.txt"));
    expect(prompt).toMatch(/# Interrupted\n\nYou started this task before/);
    expect(prompt).not.toMatch(/The conversation so far/);
    expect(await ada.tasks()).toMatchObject([{ status: "completed", run_count: 3 }]);
    expect(await app.db.read("select * from rate_limit")).toEqual([]);
  });

  it("have a limit: after this many runs the task fails with a notice", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openLimited(clock);
    const ada = await setUp(app);
    await ada.send("limit");
    for (let run = 1; run < LIMITED_RUNS_MAX; run++) {
      await app.until("engine.limited", run);
      clock.advance(HOUR_MS);
    }
    await app.until("task.failed");
    expect(await ada.tasks()).toMatchObject([{ status: "failed", run_count: LIMITED_RUNS_MAX }]);
    const replies = (await ada.messages()).filter(({ role }: { role: string }) => role === "bee");
    expect(replies).toHaveLength(2);
    expect(replies[1].content).toMatch(/failed: rate_limited, rate_limited: API Error: 429/);
  });

  it("let a schedule wait for its next time, like any failure", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openLimited(clock);
    const ada = await setUp(app);
    const task = await app.call("POST /api/tasks", {
      message_id: "script",
      worker_id: ada.worker.id,
      instruction: "limit 3600",
      type: "scheduled",
      cron: "0 0 1 1 *",
    });
    await app.call(`POST /api/tasks/${task.id}/run`);
    await app.until("engine.limited");
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({ status: "scheduled", reason: "" });
  });

  it("stay when a run that started before them succeeds", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openLimited(clock);
    const [ada, bob] = [await setUp(app), await setUp(app)];
    const file = join(app.dataDir, "go");
    await bob.send(`until ${file}`);
    await app.until("execution.started");
    await ada.send("limit 3600");
    await app.until("engine.limited");
    await Deno.writeTextFile(file, "");
    await app.until("execution.completed");
    expect(await app.db.read("select engine from rate_limit")).toEqual([{ engine: "claude" }]);
  });
});
