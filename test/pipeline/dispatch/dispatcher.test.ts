import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines, countMostConcurrent, readLedger } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { expectCounters } from "../../harness/model/counters.ts";
import { createTempDir } from "../../harness/service/process.ts";

/** Creates tasks for a worker in this order. */
async function give(app: App, workerId: string, ...instructions: string[]): Promise<void> {
  for (const instruction of instructions) {
    await app.call("POST /api/tasks", {
      message_id: "script",
      worker_id: workerId,
      instruction,
      type: "immediate",
    });
  }
}

describe("dispatcher (contract 4.5)", () => {
  it("runs one task per work directory up to the limit, first in, first out per directory [DSP-9]", async () => {
    await using folder = await createTempDir();
    const file = join(folder.path, "ledger");
    await using app = await openApp({
      config: { engines: buildFakeEngines({ ledger: file }), limits: { max_concurrent_runs: 2 } },
    });
    const workers = [];
    for (const name of ["a", "b", "c"]) workers.push(await app.call("POST /api/workers", { name }));
    for (let i = 0; i < 4; i++) for (const worker of workers) await give(app, worker.id, "sleep 0.3");
    await app.settle();
    const lines = await readLedger(file);
    expect(lines.filter(({ word }) => word === "start")).toHaveLength(12);
    expect(lines.filter(({ word }) => word === "OVERLAP")).toEqual([]);
    expect(countMostConcurrent(lines)).toBe(2);
    for (const worker of workers) {
      const started = await app.db.read(
        "select task_id from execution where worker_id = ? order by started_at",
        [worker.id],
      );
      const made = await app.db.read("select id as task_id from task where worker_id = ? order by id", [
        worker.id,
      ]);
      expect(started).toEqual(made);
      const own = new Set(made.map((row) => row.task_id));
      expect(countMostConcurrent(lines.filter(({ task }) => own.has(task)))).toBe(1);
    }
  });

  it("treats two paths of one directory as one", async () => {
    await using folder = await createTempDir();
    const file = join(folder.path, "ledger");
    await Deno.mkdir(join(folder.path, "real"));
    await Deno.symlink(join(folder.path, "real"), join(folder.path, "link"));
    await using app = await openApp({ config: { engines: buildFakeEngines({ ledger: file }) } });
    const one = await app.call("POST /api/workers", { name: "a", work_dir: join(folder.path, "real") });
    const two = await app.call("POST /api/workers", { name: "b", work_dir: join(folder.path, "link") });
    await give(app, one.id, "sleep 0.1");
    await give(app, two.id, "sleep 0.1");
    await app.settle();
    expect(countMostConcurrent(await readLedger(file))).toBe(1);
  });

  it("keeps the tasks of a paused worker, and continues when it resumes", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "a", paused: true });
    expect(worker.status).toBe("paused");
    await give(app, worker.id, "x");
    await app.settle();
    expect(await app.db.first("select status from task")).toMatchObject({ status: "pending" });
    await app.call(`PUT /api/workers/${worker.id}`, { paused: false });
    await app.settle();
    expect(await app.db.first("select status from task")).toMatchObject({ status: "completed" });
  });

  it("a worker with a long queue does not delay another one [DSP-9]", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { max_concurrent_runs: 2 } },
    });
    const busy = await app.call("POST /api/workers", { name: "busy" });
    const quick = await app.call("POST /api/workers", { name: "quick" });
    await give(app, busy.id, ...Array.from({ length: 15 }, () => "sleep 0.05"));
    await give(app, quick.id, "ok");
    await app.settle();
    const overtook = await app.db.first<{ runs: number }>(
      `select count(*) as runs
      from execution as busy
      join execution as quick on quick.worker_id = ? and busy.created_at < quick.created_at
      join task on task.id = quick.task_id and busy.created_at > task.created_at
      where busy.worker_id = ?`,
      [quick.id, busy.id],
    );
    expect(overtook?.runs).toBeLessThan(3);
  });

  it("a task that is cancelled during its claim does not run, and the others of its round do (reliability DUR-3, DSP-11)", async () => {
    await using app = await openApp();
    const workers = [];
    for (const name of ["a", "b", "c"]) {
      workers.push(await app.call("POST /api/workers", { name, engine: "echo", paused: true }));
    }
    for (const { id } of workers) await give(app, id, "x");
    await app.settle();
    const cancelled = await app.db.first<{ id: string }>("select id from task where worker_id = ?", [
      workers[1].id,
    ]);
    let cancelling: Promise<unknown> | null = null;
    beforeClaims(app, async () => {
      await (cancelling ??= app.call(`POST /api/tasks/${cancelled?.id}/cancel`));
    });
    await wakeAll(app);
    await app.until("task.completed", 2);
    await app.settle();
    const rows = await app.db.read(
      "select status, run_count, (select count(*) from execution where task_id = task.id) as runs from task order by id",
    );
    expect(rows).toEqual([
      { status: "completed", run_count: 1, runs: 1 },
      { status: "cancelled", run_count: 0, runs: 0 },
      { status: "completed", run_count: 1, runs: 1 },
    ]);
    expect(await app.db.read("select * from reservation")).toEqual([]);
  });

  it("retries a claim that could not be stored, and runs its task once", async () => {
    await using app = await openApp();
    beforeClaims(
      app,
      (count) => count === 1 ? Promise.reject(new Error("the disk is away")) : Promise.resolve(),
    );
    const worker = await app.call("POST /api/workers", { name: "a", engine: "echo" });
    await give(app, worker.id, "x");
    await app.until("task.completed", 1);
    const [run, ...more] = await app.call(`GET /api/executions?worker_id=${worker.id}`);
    expect([run, more]).toMatchObject([{ status: "completed", result: "x" }, []]);
    expect(await app.call(`GET /api/executions/${run.id}/logs`)).toContain(" x\n");
  });

  it("counts each of several runs claimed in one round: its end, its waiting time and its usage", async () => {
    const clock = new TestClock(Date.parse("2026-01-05T08:00:00Z"));
    await using app = await openApp({ clock });
    for (const name of ["a", "b", "c"]) {
      const { id } = await app.call("POST /api/workers", { name, engine: "echo", paused: true });
      await give(app, id, "x");
    }
    await app.settle();
    clock.advance(4_000);
    await wakeAll(app);
    await app.settle();
    const rows = await Promise.all([
      "select value from counter where name = 'ended' and key = 'completed'",
      "select runs, ms, longest_ms from queue_wait_stats",
      "select executions, failed from usage",
      "select max(runs) as runs from ledger where target = 'global'",
    ].map((sql) => app.db.read(sql)));
    expect(rows).toEqual([
      [{ value: 3 }],
      [{ runs: 3, ms: 12_000, longest_ms: 4_000 }],
      Array(3).fill({ executions: 1, failed: 0 }),
      [{ runs: 3 }],
    ]);
    await expectCounters(app.db);
  });

  it("replies to a conversation once, and reports it idle once", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "hello" });
    await app.settle();
    const said = await app.call(`GET /api/local/sessions/${session.id}/messages`);
    expect(said.map(({ role, content }: { role: string; content: string }) => [role, content])).toEqual([
      ["user", "hello"],
      ["bee", "hello"],
    ]);
    expect(await app.db.read("select kind from journal where kind = 'session.idle'")).toHaveLength(1);
  });
});

async function wakeAll(app: App): Promise<void> {
  await app.db.write([{ sql: "update worker set paused = 0", args: [] }]);
  app.server.dispatcher.stage.wake();
}

/** Calls `before` whenever the claim of a run is about to be written. */
function beforeClaims(app: App, before: (count: number) => Promise<void>): void {
  const { db } = app;
  const write = db.write.bind(db);
  let count = 0;
  db.write = async (statements) => {
    if (statements.some(({ sql }) => sql.startsWith("insert into execution"))) await before(++count);
    return await write(statements);
  };
}
