import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE_AGENT, readLedger } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import {
  createRemoteWorker,
  createTask,
  formatLedgerEngine,
  startRunner,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

it(
  "two machines with one token: the second waits with advice until the first has ended (contract 18.7) [RUN-1]",
  async () => {
    await using app = await openApp();
    const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
    expect((await app.send("POST /api/runners", { name: "R1", labels: [] })).status).toBe(409);
    const ledger = join(app.dataDir, "ledger");
    const config = formatLedgerEngine(FAKE_AGENT, ledger);
    const start = (folder: string) =>
      startRunner({ token, url: app.url, root: join(app.dataDir, folder), config });
    await using first = await start("one");
    await waitUntilOnline(app, "r1");
    await using second = await start("two");
    await waitUntil(
      "the second one is refused",
      () => second.stderr.includes("another process uses this name"),
      30_000,
    );
    expect(second.stderr).toContain("svc ctl runner add");
    // A second runner in the directory of a working one is refused.
    await using third = await start("one");
    expect((await third.child.status).code).toBe(5);

    const worker = await createRemoteWorker(app, "fake");
    const ended = async (task: string) => (await app.call(`GET /api/tasks/${task}`)).status === "completed";
    const one = await createTask(app, worker, "say hello");
    await waitUntil("the first one runs it", () => ended(one), 30_000);
    expect(await first.end()).toBe(0);
    // As if the service had received nothing for a whole lease.
    await app.db.write([{ sql: "update runner set last_seen_at = 1", args: [] }]);
    const two = await createTask(app, worker, "say again");
    await waitUntil("the second one runs it", () => ended(two), 30_000);
    const runs = await app.call(`GET /api/executions?worker_id=${worker}`);
    const logs: string[] = [];
    for (const { id } of runs) logs.push(await app.call(`GET /api/executions/${id}/logs`));
    expect(logs).toEqual([
      expect.stringContaining(join(second.root, "workers", worker)),
      expect.stringContaining(join(first.root, "workers", worker)),
    ]);
    expect(await second.end()).toBe(0);
    expect((await readLedger(ledger)).map(({ word }) => word)).toEqual(["start", "end", "start", "end"]);
  },
  300_000,
);
