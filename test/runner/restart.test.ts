import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import {
  createRemoteWorker,
  createTask,
  formatLedgerEngine,
  startRunner,
  waitUntilCompleted,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { readLedger } from "../harness/fakes/agents.ts";
import { Database } from "../../src/store/db/database.ts";
import { waitUntil } from "../harness/wait.ts";

it("a run on a runner continues during a restart of the service, and is stored once [RUN-3]", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
  await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(dataDir, { recursive: true }) };
  const ledger = join(dataDir, "ledger");
  const open = join(dataDir, "open");
  const app = await openApp({ dataDir });
  const url = app.url;
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const config = formatLedgerEngine(FAKE_AGENT, ledger);
  await using runner = await startRunner({ token, url, root: join(dataDir, "r1"), config });
  await waitUntilOnline(app, "r1");
  const worker = await createRemoteWorker(app, "fake");
  const task = await createTask(app, worker, `until ${open}`);
  await waitUntil("it starts", async () => (await readLedger(ledger)).length === 1);
  // The next report of the run includes its start.
  const runs = async () => await app.call(`GET /api/executions?worker_id=${worker}`);
  await waitUntil("the service knows the start", async () => (await runs())[0].status === "running");
  const [before] = await runs();
  await app.server.stop();

  // The service was stopped for longer than the lease, and received no beats.
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  await db.write([{ sql: "update remote_run set lease_until = 1000", args: [] }]);
  await db.close();
  const port = Number(new URL(url).port);
  await using again = await openApp({ dataDir, config: { server: { port } } });
  expect((await again.call(`GET /api/tasks/${task}`)).status).toBe("running");
  await Deno.writeTextFile(open, "");
  await waitUntilCompleted(again, task);
  const executions = await again.call(`GET /api/executions?worker_id=${worker}`);
  expect(executions).toMatchObject([{ id: before.id, status: "completed", attempt: 1 }]);
  expect((await readLedger(ledger)).map(({ word }) => word)).toEqual(["start", "end"]);
  expect(await again.call(`GET /api/executions/${before.id}/logs`)).toMatch(
    /starts in[\s\S]*found[\s\S]*completed/,
  );
  expect(runner.stderr).not.toContain("lost");
});
