import { expect, it } from "vitest";
import { yieldToLoop } from "../../src/base/yield_to_loop.ts";
import type { RunnerRow } from "../../src/store/workers/runner.ts";
import { openApp } from "../harness/service/app.ts";
import {
  createFakeRunner,
  createRemoteWorker,
  createTask,
  startWaitingClaims,
  waitUntilLost,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";
import { type ClaimRequest, ClaimRequests } from "../../src/run/remote/claim_requests.ts";

const REQUEST = "01a1fd23-4a4c-746f-99ac-8860e2641168";

function poll(woken: string[], requestId: string, epoch = 1, runner = "r1"): ClaimRequest {
  return {
    runner: { id: runner, name: runner, epoch, launcher: "" } as RunnerRow,
    ...{ requestId, boxFault: "", giving: null, isRepeated: false },
    wake: () => woken.push(requestId),
  };
}

it("a runner has one waiting claim: a new one ends the old one, and waits for its pending run (contract 18)", async () => {
  const polls = new ClaimRequests();
  const woken: string[] = [];
  const older = poll(woken, "older");
  const newer = poll(woken, "newer");
  await polls.add(older);
  expect([woken, polls.free]).toEqual([[], [older]]);
  let given = () => {};
  const giving = polls.give(older, new Promise<boolean>((resolve) => given = () => resolve(true)));
  const added = polls.add(newer);
  await yieldToLoop();
  expect([woken, polls.isOpen(older), polls.free]).toEqual([["older"], false, []]);
  given();
  await giving;
  await added;
  expect([older.isRepeated, polls.isOpen(newer), polls.free]).toEqual([false, true, [newer]]);
  polls.remove(newer);
  expect(polls.isOpen(newer)).toBe(false);
});

it("a claim ends only claims of its runner: the same request, or one of an earlier process, whose late claims end none (contract 18.6)", async () => {
  const polls = new ClaimRequests();
  const woken: string[] = [];
  const [first, again, next] = [poll(woken, "a"), poll(woken, "a"), poll(woken, "b", 2)];
  const other = poll(woken, "other", 1, "r2");
  for (const one of [first, other, again]) await polls.add(one);
  expect([first.isRepeated, woken, polls.free]).toEqual([true, ["a"], [other, again]]);
  await polls.add(next);
  expect([again.isRepeated, polls.free]).toEqual([false, [other, next]]);
  const late = poll(woken, "late");
  await polls.add(late);
  expect([polls.isOpen(late), polls.free, woken]).toEqual([false, [other, next], ["a", "a", "late"]]);
  // A late answer does not remove the new claim.
  polls.remove(late);
  expect(polls.isOpen(next)).toBe(true);
});

it("a claim that ended during the round gets no run (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await runner.claim({ wait_ms: 0 });
  const worker = await createRemoteWorker(app, "echo");
  const { read } = app.db;
  let goOn = () => {};
  const gone = new Promise<void>((resolve) => goOn = resolve);
  // Lets the claim end while the dispatcher reads the task's targets.
  let looked = 0;
  app.db.read = async (sql, ...more) => {
    if (sql.includes("worker_department") && looked++ === 0) await gone;
    return await read.call(app.db, sql, ...more) as never;
  };
  const claim = runner.claim({ wait_ms: 500 });
  const task = await createTask(app, worker, "hello");
  expect((await claim).body.run).toBeNull();
  expect(looked).toBe(1);
  const { stage } = app.server.dispatcher;
  const { rounds } = stage;
  goOn();
  await waitUntil("it has looked to the end", () => stage.rounds > rounds);
  app.db.read = read;
  expect(await app.db.read("select 1 from remote_run")).toEqual([]);
  expect((await runner.claim()).body.run.execution).toMatchObject({ task_id: task, attempt: 1 });
});

it("two claims with one request get one run, and a used request is answered without a run immediately (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await runner.claim({ wait_ms: 0 });
  // The replaced claim is cut off.
  const both = Promise.allSettled([1, 2].map(() => runner.claim({ request_id: REQUEST })));
  for (const text of ["one", "two"]) await createTask(app, await createRemoteWorker(app, "echo"), text);
  const answers = (await both).flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
  const runs = answers.map(({ body }) => body.run).filter((run) => run !== null);
  expect(new Set(runs.map(({ execution }) => execution.execution_id)).size).toBe(1);
  await runner.end(runs[0].execution.execution_id);
  // Otherwise the claim would wait for 25 s, and the other task with it.
  const started = performance.now();
  expect((await runner.claim({ request_id: REQUEST })).body.run).toBeNull();
  expect(performance.now() - started).toBeLessThan(15_000);
  expect((await runner.claim()).body.run.execution).toMatchObject({ instruction: "two" });
});

it("a runner gets at most max_runs runs, and overdue runs are not kept (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  for (const text of ["one", "two"]) await createTask(app, await createRemoteWorker(app, "echo"), text);
  const id = (await runner.claim({ max_runs: 1 })).body.run.execution.execution_id;
  expect((await runner.claim({ max_runs: 1, wait_ms: 500 })).body.run).toBeNull();
  const leaseOf = () => app.db.first("select lease_until from remote_run where execution_id = ?", [id]);
  const stopped = (at: number) =>
    app.db.write([{
      sql: "update remote_run set stop = 'x', stopped_at = ?, lease_until = 9e15",
      args: [at],
    }]);
  await stopped(1);
  await runner.beat([id]);
  expect(await leaseOf()).toEqual({ lease_until: 9e15 });
  await stopped(Date.now());
  await runner.beat([id]);
  expect(await leaseOf()).not.toEqual({ lease_until: 9e15 });
});

it("a removed runner's run stays reserved until its lease expires, and has no rights (contract 18)", async () => {
  await using app = await openApp();
  const [one, two] = [await createFakeRunner(app), await createFakeRunner(app, "r2")];
  const worker = await createRemoteWorker(app, "echo");
  await createTask(app, worker, "hello");
  const { execution: { execution_id: id }, token } = (await one.claim()).body.run;
  const whoami = async () =>
    (await app.send("GET /api/auth/whoami", undefined, { authorization: `Bearer ${token}` })).status;
  expect(await whoami()).toBe(200);
  // A worker that becomes an administrator has no rights on a runner without --allow-admin.
  await app.call(`PUT /api/workers/${worker}`, { scopes: ["*:*"] });
  expect(await whoami()).toBe(401);
  await app.call(`PUT /api/workers/${worker}`, { scopes: [] });
  expect(await whoami()).toBe(200);
  await app.call("DELETE /api/runners/r1");
  expect([await whoami(), (await one.beat([id])).status]).toEqual([401, 401]);
  expect((await two.claim({ wait_ms: 500 })).body.run).toBeNull();
  expect((await app.call(`GET /api/executions/${id}`)).failure).toBe("");
  await app.db.write([{ sql: "update remote_run set lease_until = 1", args: [], wakeup: "rescuer" }]);
  await waitUntilLost(app, id);
});

it("of the copies of a repeated claim, only the last one reports that there is no run (contract 18.6) [RUN-1]", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await runner.claim({ wait_ms: 0 });
  const claim = () =>
    runner.claim({ request_id: REQUEST, wait_ms: 20_000 }).then(({ body }) => body, () => "cut off");
  const [first] = await startWaitingClaims(app, [claim]);
  expect((await runner.claim({ request_id: REQUEST, wait_ms: 0 })).body).toMatchObject({ run: null });
  expect(await first).toBe("cut off");
});
