import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { getRetryDelayMs } from "../../../src/domain/work/retry_delay.ts";
import { endRun } from "../../../src/run/ending.ts";
import { USAGE_UNKNOWN } from "../../../src/domain/work/execution.ts";
import { listOpenExecutions } from "../../../src/store/work/execution.ts";
import { findTask } from "../../../src/store/work/task.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createRandom } from "../../harness/model/schedule.ts";
import { createTask } from "../../harness/service/runner.ts";

// For a long run: SVC_TEST_ORDER=10.
const SCALE = Number(Deno.env.get("SVC_TEST_ORDER") ?? 1);

describe("dispatch", () => {
  it("a late outcome of a run that was ended as lost changes nothing [DSP-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines(), limits: { max_attempts: 3 } } });
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
    "starts the messages of one conversation and worker in order of arrival, however long each takes [DSP-10]",
    async () => {
      await using app = await openApp({ config: { engines: buildFakeEngines() } });
      const chance = createRandom(10);
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

  it("retries only lost runs, with growing delays, up to a limit [DSP-13]", async () => {
    for (let attempt = 1; attempt < 200; attempt++) {
      const delay = getRetryDelayMs(attempt);
      expect(delay).toBe([1_000, 4_000, 16_000][Math.min(attempt, 3) - 1]);
    }
    const clock = new TestClock();
    await using app = await openApp({
      clock,
      config: {
        engines: { ...buildFakeEngines(), none: { kind: "command", command: "/no/such/program" } },
        limits: { max_attempts: 3 },
      },
    });
    const { db } = app.server.parts;
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const gone = await app.call("POST /api/workers", { name: "Bob", engine: "none" });
    for (let i = 0; i < 5; i++) await createTask(app, worker.id, "exit 1");
    for (let i = 0; i < 5; i++) await createTask(app, gone.id, "ok");
    await app.settle();
    expect(await db.read("select distinct status, attempt from task")).toMatchObject([{
      status: "failed",
      attempt: 1,
    }]);
    expect(await app.call("GET /api/executions")).toHaveLength(10);

    const lost = await createTask(app, worker.id, "sleep 60");
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

  it("does not spin when the wall clock jumps [DSP-8]", async () => {
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
      // The test clock does not advance, so no stage has a reason to run.
      await settledFor(app, 250);
      const turns = app.server.stages.map((stage, index) => stage.rounds - (before[index] ?? 0));
      expect(Math.max(...turns), new Date(to).toISOString()).toBeLessThanOrEqual(2);
    }
    const minutes = await app.db.read<{ minute: number }>("select minute from occurrence");
    expect(new Set(minutes.map((row) => row.minute)).size).toBe(minutes.length);
  });
});

/** Ends every open run as lost, as a second server would. Their programs continue. */
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

/** Ends the programs of these runs, whose outcomes come too late. */
async function endPrograms({ server: { executor } }: App): Promise<void> {
  await Promise.all(executor.running.map(({ execution_id }) => executor.interrupt(execution_id)));
}

async function settledFor(app: App, ms: number): Promise<void> {
  const wakeup = app.server.parts.wakeups.listen("nobody rings this");
  await wakeup.next(systemClock, ms);
  wakeup.close();
}
