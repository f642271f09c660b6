import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { buildFakeEngines, readLedger } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { ctl } from "../../harness/terminal.ts";
import { createTask } from "../../harness/service/runner.ts";

// For a long run: SVC_TEST_ORDER=10.
const SCALE = Number(Deno.env.get("SVC_TEST_ORDER") ?? 1);

describe("dispatch", () => {
  it(
    "an idle service starts a task immediately, without waiting for a poll (figures: make bench ARGS=tasks) [DSP-5]",
    async () => {
      await using folder = await createTempDir();
      const ledger = join(folder.path, "ledger");
      await using app = await openApp({ config: { engines: buildFakeEngines({ ledger }) } });
      const worker = await app.call("POST /api/workers", { name: "Ada" });
      const waits: number[] = [];
      for (let i = 0; i < 50 * SCALE; i++) {
        const id = await createTask(app, worker.id, "ok");
        await app.settle();
        const { created_at } = await app.call(`GET /api/tasks/${id}`);
        const start = (await readLedger(ledger)).find((line) => line.task === id && line.word === "start");
        waits.push((start?.at ?? NaN) - created_at);
      }
      waits.sort((a, b) => a - b);
      // Measured from the commit to the program's first output. The limit allows for a loaded machine, but not for a poll of a second.
      expect(waits[Math.floor(waits.length / 2)]).toBeLessThan(100);
      expect(waits[Math.floor(waits.length * 0.9)]).toBeLessThan(500);
    },
    60_000 * SCALE,
  );

  it("session clear --force ends the whole process tree of a stubborn agent, escaped processes included [DSP-12, CHD-1, CHD-2]", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { stop_grace: "200ms", max_concurrent_runs: 2 } },
    });
    const one = await app.call("POST /api/workers", { name: "Ada" });
    const two = await app.call("POST /api/workers", { name: "Bob" });
    const tasks = [
      await createTask(app, one.id, "ignore-term"),
      await createTask(app, two.id, "setsid-escape-and-stay"),
      await createTask(app, one.id, "ok"),
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
});
