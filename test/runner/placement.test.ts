import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { dataPaths } from "../../src/base/paths.ts";
import { Placement } from "../../src/pipeline/placement.ts";
import { type Poll, Polls } from "../../src/run/polls.ts";
import { listLaneHeads } from "../../src/store/task_queue.ts";
import { type App, openApp } from "../harness/app.ts";
import { runOptionsOf } from "../harness/fake_service.ts";
import { awayWorker, FakeRunner, taskFor } from "../harness/runner.ts";

/** A placement of its own beside the service's, with claims of its own. */
function beside(app: App, claims: readonly Pick<Poll, "runner" | "nth">[] = []) {
  const paths = dataPaths(app.dataDir);
  const { engines } = runOptionsOf({} as never, app.dataDir);
  const times = { lease_ms: 120_000, beat_ms: 10_000, margin_ms: 20_000 };
  const polls = new Polls();
  const placement = new Placement({ db: app.db, clock: systemClock, paths, engines, polls, times });
  const added = claims.map((one, nth) => polls.add(pollOf(one, nth)));
  return { placement, polls, added: Promise.all(added) };
}

function pollOf(one: Pick<Poll, "runner" | "nth">, n: number): Poll {
  return { ...one, claim: { request_id: `request ${n}` }, giving: null, isRepeated: false, wake: () => {} };
}

/** Looks once for places of all that waits; answers where there is one, and whether a claim that comes could get something. */
async function look({ placement, polls }: ReturnType<typeof beside>, app: App) {
  const now = Date.now();
  placement.begin();
  expect(polls.unplaced).toBe(true);
  const { heads } = await listLaneHeads(app.db, now);
  const round = await placement.round(heads, now);
  const kinds = heads.map((task) => {
    const place = round.placeOf(task);
    if (place.kind === "spot") round.take(place.spot);
    return place.kind;
  });
  round.done();
  return [kinds.sort(), polls.unplaced];
}

it("a claim that comes asks for a task only where it could get one: not of a directory that has a run (contract 18)", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const runner = new FakeRunner(app, token);
  const [busy, free] = [await awayWorker(app, "echo"), await awayWorker(app, "echo")];
  for (const worker of [busy, free]) {
    await taskFor(app, worker, "makes it the home");
    const { run } = (await runner.claim()).body;
    if (worker === free) await runner.end(run.execution.execution_id);
  }
  const [row] = await app.db.read<{ id: string; epoch: number }>("select id, epoch from runner");
  const claim = { runner: { name: "r1", id: row?.id ?? "", epoch: row?.epoch ?? 0 }, nth: 0 };
  await taskFor(app, busy, "waits for the run before it");
  expect(await look(beside(app), app)).toEqual([["later"], false]);
  const waiting = beside(app, [claim]);
  await waiting.added;
  expect(await look(waiting, app)).toEqual([["later"], false]);
  await taskFor(app, free, "waits for a claim");
  expect(await look(beside(app), app)).toEqual([["later", "later"], true]);
  expect(await look(waiting, app)).toEqual([["later", "spot"], false]);
  // As many runs as it may have: the end of one makes room.
  await app.db.write([{ sql: "update runner set max_runs = 1", args: [] }]);
  expect(await look(beside(app), app)).toEqual([["later", "later"], false]);
  // A worker without a home could go to a runner that comes.
  await app.db.write([{ sql: "update worker set home = '' where id = ?", args: [free] }]);
  expect(await look(beside(app), app)).toEqual([["later", "later"], true]);
  await app.db.write([{ sql: "update worker set home = 'r1' where id = ?", args: [free] }]);
  await app.db.write([{ sql: "update runner set max_runs = 4, epoch = epoch + 1", args: [] }]);
  expect(await look(waiting, app)).toEqual([["later", "later"], true]);
});

it("a task that its claim did not get waits for the next claim, which asks for it (contract 18)", async () => {
  await using app = await openApp();
  const claim = { runner: { name: "r1", id: "r1", epoch: 1 }, nth: 0 };
  const { placement, polls, added } = beside(app, [claim]);
  await added;
  const [poll] = polls.free;
  if (poll === undefined) throw new Error("no claim waits");
  const spot = { poll, workDir: "/x" };
  for (const [giving, unplaced] of [[true, false], [false, true]] as const) {
    polls.unplaced = false;
    await placement.give(spot, Promise.resolve(giving));
    expect(polls.unplaced).toBe(unplaced);
  }
  polls.unplaced = false;
  await expect(placement.give(spot, Promise.reject(new Error("the disk is full")))).rejects.toThrow("full");
  expect(polls.unplaced).toBe(true);
});
