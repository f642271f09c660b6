import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE_AGENT, readLedger } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { Proxy } from "../harness/fakes/proxy.ts";
import {
  createRemoteWorker,
  createTask,
  FakeRunner,
  formatLedgerEngine,
  startRunner,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

// A runner ends its run before the lease expires: 5 s of stop_grace, 2 s and the margin before.
const SHORT = { lease_ms: 12_000, beat_ms: 500, margin_ms: 500 };

/** A service with a runner `r1`, and a task whose agent writes a ledger and must be killed. */
async function world(app: App) {
  const ledger = join(app.dataDir, "ledger");
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const start = (url: string) =>
    startRunner({
      token,
      url,
      root: join(app.dataDir, "r1"),
      config: formatLedgerEngine(FAKE_AGENT, ledger),
    });
  const worker = await createRemoteWorker(app, "fake");
  const begin = async () => {
    await waitUntilOnline(app, "r1");
    const task = await createTask(app, worker, "tick");
    await waitUntil(
      "it ticks",
      async () => (await readLedger(ledger)).some(({ word }) => word === "tick"),
      60_000,
    );
    return task;
  };
  const attempts = async () => (await readLedger(ledger)).filter(({ word }) => word === "start").length;
  /** The second attempt starts after the first one and all its processes have ended. */
  const second = async () => {
    await waitUntil("it is tried again", async () => await attempts() === 2, 90_000);
    const lines = await readLedger(ledger);
    expect(lines.filter(({ word }) => word === "OVERLAP")).toEqual([]);
    const at = lines.findLastIndex(({ word }) => word === "start");
    expect(lines.slice(at).filter(({ attempt }) => attempt === 1)).toEqual([]);
    // The next report of the run includes its start.
    const runs = async () => await app.call(`GET /api/executions?worker_id=${worker}`);
    await waitUntil("the service knows the start", async () => (await runs())[0].status === "running");
    const [last, before] = await runs();
    expect(before).toMatchObject({ attempt: 1, status: "failed", failure: "server_lost" });
    expect(last).toMatchObject({ attempt: 2, status: "running" });
  };
  return { token, ledger, start, begin, second, attempts };
}

it(
  "a killed and restarted runner ends its leftovers, and the task is retried [RUN-1]",
  async () => {
    await using app = await openApp();
    const { start, begin, second } = await world(app);
    const first = await start(app.url);
    await begin();
    await first.end("SIGKILL");
    await using _again = await start(app.url);
    await second();
  },
  600_000,
);

it("a runner whose place file was truncated writes a new one [RUN-1]", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const root = join(app.dataDir, "r1");
  await Deno.mkdir(root);
  await Deno.writeTextFile(join(root, "place"), "");
  await using _runner = await startRunner({ token, url: app.url, root });
  await waitUntilOnline(app, "r1");
  expect(await Deno.readTextFile(join(root, "place"))).toMatch(/^[0-9a-f-]{36}\n$/);
});

it(
  "a late claim of an earlier process takes over briefly: the process in the directory reconnects once (contract 18.7) [RUN-1]",
  async () => {
    await using app = await openApp();
    const { token, start, begin, second } = await world(app);
    await using runner = await start(app.url);
    await begin();
    const place = (await Deno.readTextFile(join(runner.root, "place"))).trim();
    const late = () => new FakeRunner(app, token, place).claim({ wait_ms: 0 });
    expect(await late()).toMatchObject({ status: 200, body: { epoch: 2, run: null } });
    // The run is lost with its process, and ended before the retry.
    await second();
    expect(await app.db.read("select epoch, work_root from runner")).toEqual([
      { epoch: 3, work_root: runner.root },
    ]);
    expect(await late()).toMatchObject({ status: 200, body: { epoch: 4 } });
    expect((await runner.child.status).code).toBe(4);
  },
  600_000,
);

it(
  "a runner that was suspended while its run was reassigned ends the run first [RUN-1]",
  async () => {
    await using app = await openApp();
    const { start, begin, second, ledger, attempts } = await world(app);
    await using runner = await start(app.url);
    const task = await begin();
    runner.child.kill("SIGSTOP");
    // As if the lease had expired without contact.
    await app.db.write([
      { sql: "update runner set last_seen_at = 1", args: [] },
      { sql: "update remote_run set lease_until = 1", args: [], wakeup: "rescuer" },
    ]);
    await waitUntil(
      "it is lost",
      async () => /r1/.test((await app.call(`GET /api/tasks/${task}`)).reason),
      60_000,
    );
    const before = (await readLedger(ledger)).length;
    await waitUntil("its agent continues", async () => (await readLedger(ledger)).length > before + 3);
    expect(await attempts()).toBe(1);
    runner.child.kill("SIGCONT");
    await second();
  },
  600_000,
);

it(
  "a disconnected runner ends its run before the lease expires, and reconnects [RUN-1]",
  async () => {
    await using app = await openApp({ leaseTimes: SHORT });
    using proxy = new Proxy(app.url);
    const { start, begin, second, ledger } = await world(app);
    await using _runner = await start(proxy.url);
    const task = await begin();
    proxy.mode = "refuse";
    proxy.cut();
    const lost = async () => (await app.call(`GET /api/tasks/${task}`)).status === "pending";
    await waitUntil("the service gives it up", lost, 60_000);
    const seen = (await readLedger(ledger)).length;
    const lastAt = (await readLedger(ledger)).at(-1)?.at ?? 0;
    // The agent was gone when the service gave up its run: it writes nothing more.
    expect(Date.now() - lastAt).toBeGreaterThan(150);
    expect((await readLedger(ledger)).length).toBe(seen);
    proxy.mode = "pass";
    await second();
  },
  600_000,
);
