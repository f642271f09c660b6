import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

const runs = (app: App) => app.call("GET /api/executions?status=running");
const config = { engines: buildFakeEngines(), limits: { stop_grace: "200ms" }, shutdown_grace: "0s" };

async function give(app: App, more: Record<string, unknown>) {
  const { id } = await app.call("POST /api/workers", { name: "Ada" });
  const instruction = `until ${join(app.dataDir, "go")}`;
  return await app.call("POST /api/tasks", { message_id: "m", worker_id: id, instruction, ...more });
}

// vitest fails on an unhandled rejection, as the service would end.
describe("a run that cannot be ended because a read fails", () => {
  it("of a replaced turn: the service continues, and the run ends normally", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, config });
    await give(app, { type: "scheduled", cron: "*/10 * * * *", overlap: "replace" });
    clock.advance(600_000);
    await waitUntil("it runs", async () => (await runs(app)).length === 1);
    let asked = 0;
    app.server.executor.interrupt = () => Promise.reject(new Error(`no read ${asked++}`));
    clock.advance(600_000);
    await app.until("task.queued");
    await waitUntil("it was asked for", () => asked === 1);
    await Deno.writeTextFile(join(app.dataDir, "go"), "");
    await app.until("task.due", 2);
    await app.settle();
  });

  it("of a budget: the end is requested once per round, and again after a failure", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openApp({ clock, config });
    const more = { unit: "minutes", limit: 10, period: "24h", action: "stop" };
    await app.call("POST /api/budgets", { name: "Time", ...more });
    await give(app, { type: "immediate" });
    await waitUntil("it runs", async () => (await runs(app)).length === 1);
    const { executor, stages } = app.server;
    const budgets = stages.find(({ name }) => name === "budgets");
    const rounds = async () => {
      for (let i = 0; i < 3; i++) {
        const before = budgets?.rounds ?? 0;
        budgets?.wake();
        await waitUntil("a round", () => (budgets?.rounds ?? 0) > before && budgets?.idle === true);
      }
    };
    const first = Promise.withResolvers<void>();
    let asked = 0;
    const stopFor = executor.stopRun.bind(executor);
    executor.stopRun = () => (asked++, first.promise);
    clock.advance(600_000);
    await rounds();
    expect(asked, "one at a time").toBe(1);
    executor.stopRun = stopFor;
    first.reject(new Error("no read"));
    await rounds();
    await app.until("task.failed");
    expect(await app.call("GET /api/executions")).toMatchObject([{ failure: "budget" }]);
  });
});

describe("a stop [SHD-2]", () => {
  it("ends a run that a dispatcher round was about to start [SHD-2]", async () => {
    const app = await openApp({ config });
    const claiming = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const write = app.db.write.bind(app.db);
    app.db.write = async (statements) => {
      if (statements.some(({ sql }) => sql.includes("insert into reservation"))) {
        claiming.resolve();
        await go.promise;
      }
      return await write(statements);
    };
    await give(app, { type: "immediate" });
    await claiming.promise;
    const stopped = app.server.stop();
    setTimeout(go.resolve, 200);
    await stopped;
    expect(app.server.executor.running).toEqual([]);
    await app.stop();
  });
});
