import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FAKE_AGENT, readLedger } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { canMountDisk, SmallDisk } from "../harness/service/disk.ts";
import {
  createRemoteWorker,
  createTask,
  formatLedgerEngine,
  startRunner,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const MOUNTS = await canMountDisk();

describe.skipIf(!MOUNTS)("a runner with a full disk (contract 18.7)", () => {
  it(
    "fails no task: it returns its runs to the queue, claims nothing until the disk has space, and then continues [RUN-1]",
    async () => {
      await using app = await openApp();
      const root = join(app.dataDir, "r1");
      await using disk = await SmallDisk.mount(root, 4);
      const ledger = join(app.dataDir, "ledger");
      const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
      const config = formatLedgerEngine(FAKE_AGENT, ledger);
      await using runner = await startRunner({ token, url: app.url, root, config });
      await waitUntilOnline(app, "r1");
      const worker = await createRemoteWorker(app, "fake");
      const ended = async (task: string) => (await app.call(`GET /api/tasks/${task}`)).status === "completed";

      // An agent that writes more than the disk can hold: its log ends early, its outcome is stored.
      const flood = await createTask(app, worker, "flood 8000000");
      await waitUntil("the flood ends", () => ended(flood), 60_000);
      const [{ id: flooded }] = await app.call(`GET /api/executions?worker_id=${worker}`);
      const log = await app.call(`GET /api/executions/${flooded}/logs`);
      expect([log.length > 1_000_000, log.length < 4_200_000]).toEqual([true, true]);

      await disk.fill();
      const task = await createTask(app, worker, "say hello");
      await waitUntil("it says so", () => runner.stderr.includes("claims nothing"), 60_000);
      // A claim that waited before may still get the task. The runner returns it.
      const isPending = async () => (await app.call(`GET /api/tasks/${task}`)).status === "pending";
      await waitUntil("the task waits", isPending, 60_000);
      expect((await readLedger(ledger)).filter(({ word }) => word === "start")).toHaveLength(1);
      await disk.free();
      await waitUntil("the runner continues", () => ended(task), 60_000);
      const runs = await app.call(`GET /api/executions?worker_id=${worker}`);
      const [last, ...before] = runs.filter(({ task_id }: { task_id: string }) => task_id === task);
      expect(last).toMatchObject({ status: "completed", attempt: 1, result: "hello" });
      // The claim that was waiting may get the task while the disk is full. A stop uses up no attempt either.
      expect(before.length).toBeLessThan(6);
      for (const one of before) expect(one).toMatchObject({ failure: "server_lost", attempt: 1 });
      const lines = await readLedger(ledger);
      expect(lines.map(({ word }) => word)).toEqual(["start", "end", "start", "end"]);
    },
    600_000,
  );
});
