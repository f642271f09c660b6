import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { engineSchema } from "../../src/config/engine.ts";
import { Catalog } from "../../src/engine/catalog.ts";
import { Lease } from "../../src/runner/lease.ts";
import { ServiceClient } from "../../src/runner/service_client.ts";
import { RunnerLoop } from "../../src/runner/loop.ts";
import { FAKE_AGENT, readLedger } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { buildRunOptions, MACHINE } from "../harness/fakes/fake_service.ts";
import {
  createRemoteWorker,
  createTask,
  waitUntilCompleted,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const HOUR_MS = 3_600_000;
// A runner ends its run before the lease expires: stop_grace, 3 s and the margin before.
const SHORT = { lease_ms: 12_000, beat_ms: 200, margin_ms: 500 };

/** A machine clock that is off by a chosen amount. */
class WrongClock implements Clock {
  offMs = 0;
  now = () => Date.now() + this.offMs;
  monotonic = () => systemClock.monotonic();
  after = (ms: number, call: () => void) => systemClock.after(ms, call);
}

/** A runner `r1` in this process with this clock, and a worker on it whose agents write a ledger. */
async function startLoop(app: App, clock: Clock) {
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const ledger = join(app.dataDir, "ledger");
  const root = join(app.dataDir, "r1");
  await Deno.mkdir(root);
  const options = buildRunOptions(new ServiceClient({ url: app.url, token, clock }), root);
  const fake = engineSchema.parse({ kind: "command", command: FAKE_AGENT, env: { FAKE_LEDGER: ledger } });
  const defaultsFor = (kind: string) => engineSchema.parse({ kind });
  const engines = new Catalog({ defaultName: "fake", configured: { fake }, defaultsFor }, MACHINE);
  const loop = new RunnerLoop({
    ...options,
    clock,
    engines,
    maxRuns: 2,
    place: crypto.randomUUID(),
    once: false,
  });
  const running = loop.run();
  await waitUntilOnline(app, "r1");
  const worker = await createRemoteWorker(app, "fake");
  return {
    worker,
    words: async () => (await readLedger(ledger)).map(({ word }) => word),
    [Symbol.asyncDispose]: async () => {
      await loop.stop(0, AbortSignal.abort());
      await running;
    },
  };
}

describe("a runner with a wrong clock [RUN-1]", () => {
  for (const [name, offMs] of [["ahead", HOUR_MS], ["behind", -HOUR_MS]] as const) {
    it(`an hour ${name}: its runs continue, and all times are the service's [RUN-1]`, async () => {
      await using app = await openApp({ leaseTimes: SHORT });
      const clock = new WrongClock();
      clock.offMs = offMs;
      await using runner = await startLoop(app, clock);
      const open = join(app.dataDir, "open");
      const before = Date.now();
      const task = await createTask(app, runner.worker, `until ${open}`);
      await beats(app, task, 3);
      await Deno.writeTextFile(open, "");
      await waitUntilCompleted(app, task);
      const [execution, ...more] = await app.call(`GET /api/executions?worker_id=${runner.worker}`);
      expect([execution.attempt, more]).toEqual([1, []]);
      const times = [before, execution.created_at, execution.started_at, execution.completed_at, Date.now()];
      expect(times).toEqual(times.toSorted((one, other) => one - other));
      expect(await runner.words()).toEqual(["start", "end"]);
    }, 180_000);
  }

  it("set back an hour during a run: the run continues to its end", async () => {
    await using app = await openApp({ leaseTimes: SHORT });
    const clock = new WrongClock();
    await using runner = await startLoop(app, clock);
    const open = join(app.dataDir, "open");
    const task = await createTask(app, runner.worker, `until ${open}`);
    await beats(app, task, 1);
    clock.offMs = -HOUR_MS;
    await beats(app, task, 3);
    await Deno.writeTextFile(open, "");
    await waitUntilCompleted(app, task);
    expect(await app.call(`GET /api/executions?worker_id=${runner.worker}`)).toMatchObject([{ attempt: 1 }]);
  }, 180_000);

  it(
    "set forward an hour during a run: the run is ended and retried, as after a sleep [RUN-1]",
    async () => {
      // No beat renews the lease after the clock change, and it lasts longer than this test.
      const leaseTimes = { ...SHORT, lease_ms: 600_000, beat_ms: 300_000 };
      await using app = await openApp({ leaseTimes });
      const clock = new WrongClock();
      await using runner = await startLoop(app, clock);
      const open = join(app.dataDir, "open");
      const task = await createTask(app, runner.worker, `until ${open}`);
      await waitUntil("it starts", async () => (await runner.words()).includes("start"));
      clock.offMs = HOUR_MS;
      await waitUntil("it is tried again", async () => (await runner.words()).length === 2, 30_000);
      await Deno.writeTextFile(open, "");
      await waitUntilCompleted(app, task);
      // The claim that was waiting during the clock change may get a lease that looks expired. Its run does not start.
      const [last, ...before] = await app.call(`GET /api/executions?worker_id=${runner.worker}`);
      expect([last.status, before.length <= 2]).toEqual(["completed", true]);
      for (const one of before) expect(one).toMatchObject({ status: "failed", failure: "server_lost" });
      expect(await runner.words()).toEqual(["start", "start", "end"]);
    },
    300_000,
  );
});

it("Lease expires by whichever clock shows more elapsed time (contract 18.7)", () => {
  const clock = new TestClock();
  const moment = () => ({ wall: clock.now(), monotonic: clock.monotonic() });
  const lease = new Lease(clock, 120_000, moment());
  clock.advance(20_000);
  expect(lease.leftMs).toBe(100_000);
  clock.jump(clock.now() - HOUR_MS);
  expect(lease.leftMs).toBe(100_000);
  clock.jump(clock.now() + 2 * HOUR_MS);
  expect(lease.leftMs).toBeLessThan(0);
  lease.renew(moment());
  expect(lease.leftMs).toBe(120_000);
  // The late answer belongs to an earlier request.
  const late = moment();
  clock.advance(30_000);
  lease.renew(late);
  expect(lease.leftMs).toBe(90_000);
});

/** Resolves when the lease of the only run was renewed `count` times. */
async function beats(app: App, task: string, count: number): Promise<void> {
  const until = async () =>
    (await app.db.first<{ lease_until: number }>(
      "select lease_until from remote_run where execution_id = (select id from execution where task_id = ?)",
      [task],
    ))?.lease_until ?? 0;
  let last = 0;
  for (let seen = 0; seen <= count; seen++) {
    await waitUntil("it beats", async () => await until() > last);
    last = await until();
  }
}
