import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { buildDataPaths } from "../../src/base/paths.ts";
import { Launching } from "../../src/pipeline/dispatch/launching.ts";
import { Placement } from "../../src/pipeline/dispatch/placement.ts";
import { ClaimRequests } from "../../src/run/remote/claim_requests.ts";
import { listNextTasks } from "../../src/store/work/task_queue.ts";
import type { RunnerRow } from "../../src/store/workers/runner.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { buildRunOptions } from "../harness/fakes/fake_service.ts";
import { createFakeRunner, createRemoteWorker, createTask } from "../harness/service/runner.ts";

/** Finds a slot for each waiting task, with one claim of this runner or none. Returns the kinds of results. */
async function look(app: App, runner: { id: string; epoch: number } | null): Promise<string[]> {
  const paths = buildDataPaths(app.dataDir);
  const { engines } = buildRunOptions({} as never, app.dataDir);
  const times = { lease_ms: 120_000, beat_ms: 10_000, margin_ms: 20_000 };
  const requests = new ClaimRequests();
  const placement = new Placement({
    ...{ db: app.db, clock: systemClock, paths, engines, polls: requests, times },
    findGatewayKind: () => null,
    launching: new Launching(app.db, {}),
  });
  if (runner !== null) {
    await requests.add({
      runner: { name: "r1", launcher: "", ...runner } as RunnerRow,
      ...{ requestId: "request", boxFault: "", giving: null, isRepeated: false, wake: () => {} },
    });
  }
  expect(placement.hasClaims).toBe(runner !== null);
  const now = Date.now();
  const { heads } = await listNextTasks(app.db, now);
  const round = await placement.startRound(heads, now);
  const kinds = heads.map((task) => {
    const result = round.findSlot(task);
    if (result.kind === "slot") round.take(task, result.slot);
    return result.kind;
  });
  return kinds.sort();
}

it("Placement: a task starts only with a waiting claim, a free slot and a free directory (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const [busy, free] = [await createRemoteWorker(app, "echo"), await createRemoteWorker(app, "echo")];
  for (const worker of [busy, free]) {
    await createTask(app, worker, "makes it the home");
    const { run } = (await runner.claim()).body;
    if (worker === free) await runner.end(run.execution.execution_id);
  }
  const claim = await app.db.first<{ id: string; epoch: number }>("select id, epoch from runner");
  await createTask(app, busy, "waits for the run before it");
  expect(await look(app, null)).toEqual(["later"]);
  expect(await look(app, claim)).toEqual(["later"]);
  await createTask(app, free, "waits for a claim");
  expect(await look(app, null)).toEqual(["later", "later"]);
  expect(await look(app, claim)).toEqual(["later", "slot"]);
  await app.db.write([{ sql: "update runner set max_runs = 1", args: [] }]);
  expect(await look(app, claim)).toEqual(["later", "later"]);
  await app.db.write([{ sql: "update runner set max_runs = 4, epoch = epoch + 1", args: [] }]);
  expect(await look(app, claim)).toEqual(["later", "later"]);
});
