import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fakeEngines, overlap, readLedger } from "../harness/agents.ts";
import { type App, openApp } from "../harness/app.ts";
import { tempDir } from "../harness/process.ts";

/** Tasks that a script gives to workers, in this order. */
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
  it("runs one task per work directory and so many in all, first in first out in each lane (reliability DSP-9)", async () => {
    await using folder = await tempDir();
    const file = join(folder.path, "ledger");
    await using app = await openApp({
      config: { engines: fakeEngines({ ledger: file }), limits: { max_concurrent_runs: 2 } },
    });
    const workers = [];
    for (const name of ["a", "b", "c"]) workers.push(await app.call("POST /api/workers", { name }));
    for (let i = 0; i < 4; i++) for (const worker of workers) await give(app, worker.id, "sleep 0.3");
    await app.settle();
    const lines = await readLedger(file);
    expect(lines.filter(({ word }) => word === "start")).toHaveLength(12);
    expect(lines.filter(({ word }) => word === "OVERLAP")).toEqual([]);
    expect(overlap(lines)).toBe(2);
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
      expect(overlap(lines.filter(({ task }) => own.has(task)))).toBe(1);
    }
  });

  it("treats two names of one directory as one lane", async () => {
    await using folder = await tempDir();
    const file = join(folder.path, "ledger");
    await Deno.mkdir(join(folder.path, "real"));
    await Deno.symlink(join(folder.path, "real"), join(folder.path, "link"));
    await using app = await openApp({ config: { engines: fakeEngines({ ledger: file }) } });
    const one = await app.call("POST /api/workers", { name: "a", work_dir: join(folder.path, "real") });
    const two = await app.call("POST /api/workers", { name: "b", work_dir: join(folder.path, "link") });
    await give(app, one.id, "sleep 0.1");
    await give(app, two.id, "sleep 0.1");
    await app.settle();
    expect(overlap(await readLedger(file))).toBe(1);
  });

  it("leaves the tasks of a paused worker waiting, and goes on when it wakes", async () => {
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

  it("a worker with a long queue does not hold up another one", async () => {
    await using app = await openApp({
      config: { engines: fakeEngines(), limits: { max_concurrent_runs: 2 } },
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
});
