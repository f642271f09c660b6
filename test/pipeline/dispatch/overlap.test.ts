import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const MINUTE_MS = 60_000;

/** Creates a schedule of every ten minutes whose runs end when a file `go` exists. */
async function open(overlap: string, more: Json = {}, dataDir?: string) {
  const clock = new TestClock("2026-01-05T08:00:00Z");
  const config = { engines: buildFakeEngines(), limits: { stop_grace: "200ms" } };
  const app = await openApp({ clock, config, ...(dataDir === undefined ? {} : { dataDir }) });
  const go = join(app.dataDir, "go");
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const task = await app.call("POST /api/tasks", {
    message_id: "m",
    worker_id: worker.id,
    instruction: `until ${go}`,
    type: "scheduled",
    cron: "*/10 * * * *",
    overlap,
    ...more,
  });
  return { app, clock, task, worker, go };
}

const runs = (app: App, status: string) => app.call(`GET /api/executions?status=${status}`);
const fires = (app: App) =>
  app.db.read<Json>("select run_no, status, due_at from occurrence order by run_no");
const kinds = async (app: App) =>
  (await app.db.read<Json>(
    "select kind from journal where kind in ('task.due', 'task.skipped', 'task.queued') order by seq",
  ))
    .map(({ kind }: Json) => kind);

/** Moves the clock to the next time and waits for the scheduler. */
async function next(
  app: App,
  clock: TestClock,
  kind: "task.due" | "task.skipped" | "task.queued",
  count = 1,
) {
  clock.advance(10 * MINUTE_MS);
  await app.until(kind, count);
}

describe("overlap (contract 15)", () => {
  it("queue: one time waits for the end of the run, and the others are skipped", async () => {
    const { app, clock, task, go } = await open("queue");
    await using _ = app;
    await next(app, clock, "task.due");
    await waitUntil("it runs", async () => (await runs(app, "running")).length === 1);
    await next(app, clock, "task.queued");
    await next(app, clock, "task.skipped");
    expect(await fires(app)).toMatchObject([{ run_no: 1, status: "running" }]);
    await Deno.writeTextFile(go, "");
    await app.until("task.due", 2);
    await app.settle();
    const start = Date.parse("2026-01-05T08:00:00Z");
    expect(await fires(app)).toEqual([
      { run_no: 1, status: "completed", due_at: start + 10 * MINUTE_MS },
      { run_no: 2, status: "completed", due_at: start + 20 * MINUTE_MS },
    ]);
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({
      status: "scheduled",
      runs_ended: 2,
      next_run_at: start + 40 * MINUTE_MS,
    });
    expect(await kinds(app)).toEqual(["task.due", "task.queued", "task.skipped", "task.due"]);
  });

  it("replace: the run ends, then the new one runs, and the schedule counts no failure", async () => {
    const { app, clock, task, go } = await open("replace", { pause_after_failures: 1 });
    await using _ = app;
    await next(app, clock, "task.due");
    await waitUntil("it runs", async () => (await runs(app, "running")).length === 1);
    await next(app, clock, "task.due", 2);
    await waitUntil("the next one runs", async () => {
      const [one] = await runs(app, "running");
      return one?.run_no === 2;
    });
    expect(await runs(app, "failed")).toMatchObject([{ run_no: 1, failure: "cancelled" }]);
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({
      paused: false,
      failures_in_row: 0,
      last_status: "cancelled",
    });
    await Deno.writeTextFile(go, "");
    await app.settle();
    expect((await fires(app)).map(({ status }: Json) => status)).toEqual(["cancelled", "completed"]);
  });

  it("replace: a running gate ends for the next time", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, config: { engines: { default: "echo" } } });
    const file = join(app.dataDir, "open");
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/tasks", {
      message_id: "m",
      worker_id: worker.id,
      instruction: "hi",
      type: "scheduled",
      cron: "*/10 * * * *",
      overlap: "replace",
      gate: { command: ["sh", "-c", `until [ -e ${file} ]; do sleep 0.02; done`] },
    });
    await next(app, clock, "task.due");
    await waitUntil("its gate runs", async () => (await fires(app))[0]?.status === "gating");
    await next(app, clock, "task.queued");
    await waitUntil("the next gate runs", async () => (await fires(app))[1]?.status === "gating");
    await Deno.writeTextFile(file, "");
    await app.settle(30_000);
    expect((await fires(app)).map(({ status }: Json) => status)).toEqual(["cancelled", "completed"]);
  });

  it.each(["queue", "replace"])(
    "%s: the waiting time survives a stop, and a pause drops it [CMD-3]",
    async (overlap) => {
      const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
      const { app, clock, task, go } = await open(overlap, {}, dataDir);
      await next(app, clock, "task.due");
      await waitUntil("it runs", async () => (await runs(app, "running")).length === 1);
      await app.server.stages.find(({ name }) => name === "dispatcher")?.stop();
      await next(app, clock, "task.queued");
      await app.stop();
      const config = { engines: buildFakeEngines() };
      const again = await openApp({ clock, dataDir, config });
      await Deno.writeTextFile(go, "");
      await again.until("task.due", 2);
      await again.settle(30_000);
      // An orderly stop requeues the first run, so it comes first. A replaced run does not come again.
      expect((await fires(again)).map(({ status }: Json) => status)).toEqual([
        overlap === "queue" ? "completed" : "cancelled",
        "completed",
      ]);
      await again.db.write([{
        sql: "update task set queued_at = 1, paused = 0 where id = ?",
        args: [task.id],
      }]);
      expect(await again.call(`PUT /api/tasks/${task.id}`, { paused: true })).toMatchObject({ paused: true });
      expect(await again.db.read("select queued_at from task where paused = 1")).toEqual([{
        queued_at: null,
      }]);
      await again.stop();
      await Deno.remove(dataDir, { recursive: true });
    },
    60_000,
  );

  it("replace: marks only the schedule's own run", async () => {
    const { app, clock, go } = await open("replace");
    await using _ = app;
    const other = await app.call("POST /api/workers", { name: "Bob" });
    await app.call("POST /api/tasks", {
      ...{ message_id: "n", worker_id: other.id, instruction: `until ${go}`, type: "immediate" },
    });
    await next(app, clock, "task.due");
    await waitUntil("both run", async () => (await runs(app, "running")).length === 2);
    await next(app, clock, "task.due", 2);
    const marks = await app.db.read("select cancelled_by from execution where worker_id = ?", [other.id]);
    expect(marks).toEqual([{ cancelled_by: "" }]);
    await Deno.writeTextFile(go, "");
    await app.settle();
  });
});
