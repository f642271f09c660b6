import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { type AskingRun, startAskingRun } from "../harness/fakes/asker.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";
import { createTask } from "../harness/service/runner.ts";
import type { Json } from "../harness/service/client.ts";

function wait(app: App, run: AskingRun, id: string, ms = 60_000): Promise<Json> {
  return app.send(`GET /api/questions/${id}/wait?timeout_ms=${ms}`, undefined, run.headers);
}

const until = (look: () => Promise<boolean>) => waitUntil("the API answers what is expected", look);

function listExecutions(app: App, workerId: string): Promise<Json[]> {
  return app.db.read("select * from execution where worker_id = ? order by id", [workerId]);
}

describe("a run that waits for an answer (contract 12)", () => {
  it("holds no slot, but keeps its work directory lock, and its worker is waiting", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { max_concurrent_runs: 1 } },
    });
    const run = await startAskingRun(app);
    const other = await app.call("POST /api/workers", { name: "Other" });
    await createTask(app, run.workerId, "say hi");
    await createTask(app, other.id, "say hi");
    const statusOf = async () => (await app.call(`GET /api/workers/${run.workerId}`)).status;
    expect(await statusOf()).toBe("working");
    expect(await listExecutions(app, other.id)).toEqual([]);
    const { id } = await run.ask();
    const { done } = await app.listening(() => wait(app, run, id));
    await until(async () => (await listExecutions(app, other.id))[0]?.status === "completed");
    expect(await statusOf()).toBe("waiting");
    expect((await app.call(`GET /api/workers/${run.workerId}/status`)).status).toBe("waiting");
    expect((await app.call("GET /api/system/overview")).workers).toMatchObject({
      waiting: 1,
      working: 0,
      idle: 1,
    });
    // A separate work directory has a separate lock.
    expect(await listExecutions(app, run.workerId)).toHaveLength(1);
    await app.call(`POST /api/questions/${id}/answer`, { answer: "Green" });
    expect((await done).body).toMatchObject({ answer: "Green", seen_at: expect.any(Number) });
    expect(await statusOf()).toBe("working");
    await run.end();
    await app.settle();
    expect(await listExecutions(app, run.workerId)).toHaveLength(2);
  });

  it("allows as many other runs as there are slots, with any number of waiting runs", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { max_concurrent_runs: 2 } },
    });
    const waits = [];
    const runs = [];
    for (const name of ["A", "B", "C"]) {
      const run = await startAskingRun(app, { name });
      const { id } = await run.ask();
      waits.push((await app.listening(() => wait(app, run, id))).done);
      await until(async () => (await app.call(`GET /api/workers/${run.workerId}`)).status === "waiting");
      runs.push({ run, id });
    }
    const fourth = await startAskingRun(app, { name: "D" });
    const fifth = await app.call("POST /api/workers", { name: "E" });
    await createTask(app, fifth.id, "say hi");
    await app.server.dispatcher.stage.wake();
    expect(app.server.dispatcher.running).toBe(4);
    expect(await listExecutions(app, fifth.id)).toEqual([]);
    for (const { run, id } of runs) {
      await app.call(`POST /api/questions/${id}/answer`, { answer: "x" });
      await run.end();
    }
    await Promise.all(waits);
    await fourth.end();
    await app.settle();
  });

  it("is not ended by idle_timeout while it waits, but is once the wait has ended", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines({ idle_timeout: "1s" }) } });
    const run = await startAskingRun(app);
    const { id } = await run.ask();
    const started = performance.now();
    expect((await wait(app, run, id, 2_500)).body.status).toBe("open");
    expect(performance.now() - started).toBeGreaterThan(2_400);
    expect((await listExecutions(app, run.workerId))[0].status).toBe("running");
    await until(async () => (await listExecutions(app, run.workerId))[0].failure === "idle_timeout");
    await app.settle();
  });

  it("uses up no minutes of a budget (contract 14)", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock, config: { engines: buildFakeEngines({ timeout: "9h" }) } });
    const budget = { name: "Time", unit: "minutes", limit: 10, period: "24h", action: "stop" };
    const { id } = await app.call("POST /api/budgets", budget);
    const used = async () => (await app.call(`GET /api/budgets/${id}`)).used;
    const run = await startAskingRun(app);
    clock.advance(2 * 60_000);
    const asked = await run.ask();
    const { done } = await app.listening(() => wait(app, run, asked.id));
    await until(async () => (await app.call(`GET /api/workers/${run.workerId}`)).status === "waiting");
    clock.advance(30 * 60_000);
    expect(await used()).toBe(2);
    expect((await done).body.status).toBe("open");
    await until(async () => (await app.call(`GET /api/workers/${run.workerId}`)).status === "working");
    clock.advance(60_000);
    expect(await used()).toBe(3);
    expect((await listExecutions(app, run.workerId))[0].status).toBe("running");
    await run.end();
    expect(await used()).toBe(3);
    clock.advance(60_000);
    expect(await used()).toBe(3);
    await app.settle();
  });

  it("learns that the question has ended, and leaves the answer unseen if it stops waiting early", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startAskingRun(app);
    const expired = await run.ask({ text: "Now?", timeout_ms: 1_000 });
    expect((await wait(app, run, expired.id)).body.status).toBe("expired");
    const cancelled = await run.ask({ text: "Then?" });
    const { done } = await app.listening(() => wait(app, run, cancelled.id));
    await app.call(`POST /api/questions/${cancelled.id}/cancel`, {});
    expect((await done).body.status).toBe("cancelled");
    const left = await run.ask({ text: "Gone?" });
    const gone = new AbortController();
    const address = `${app.url}/api/questions/${left.id}/wait?timeout_ms=60000`;
    const response = await fetch(address, { headers: run.headers, signal: gone.signal });
    const body = response.text().catch(() => "");
    await until(async () => (await app.call(`GET /api/workers/${run.workerId}`)).status === "waiting");
    gone.abort();
    await body;
    await until(async () => (await app.call(`GET /api/workers/${run.workerId}`)).status === "working");
    await app.call(`POST /api/questions/${left.id}/answer`, { answer: "late" });
    await run.end();
    const [task] = await app.db.read<Json>("select * from question where id = ?", [left.id]);
    expect(task.answer_task_id).not.toBeNull();
    await app.settle();
  });
});
