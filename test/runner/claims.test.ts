import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import {
  createFakeRunner,
  createRemoteWorker,
  createTask,
  FakeRunner,
  waitUntilCompleted,
  waitUntilLost,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

it("a repeated claim gets the same run, and only for that runner (contract 18)", async () => {
  await using app = await openApp();
  const one = await createFakeRunner(app);
  const other = await createFakeRunner(app, "r2");
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const first = await one.claim({ request_id: ID });
  expect(first.body.run).toMatchObject({ execution: { instruction: "hello", engine: "echo", attempt: 1 } });
  const again = await one.claim({ request_id: ID });
  expect(again.body.run.execution).toEqual(first.body.run.execution);
  expect((await other.claim({ wait_ms: 0 })).body.run).toBeNull();
  // Two concurrent requests, as after a repetition while the answer is in flight.
  const id = first.body.run.execution.execution_id;
  expect((await one.end(id)).status).toBe(200);
  expect((await one.claim({ request_id: ID, wait_ms: 0 })).body.run).toBeNull();
});

it("repeated reports count once, and reports of foreign runs are refused [RUN-1]", async () => {
  await using app = await openApp();
  const one = await createFakeRunner(app);
  const other = await createFakeRunner(app, "r2");
  const worker = await createRemoteWorker(app, "echo");
  const task = await createTask(app, worker, "hello");
  const id = (await one.claim()).body.run.execution.execution_id;
  await other.claim({ wait_ms: 0 });

  for (let time = 0; time < 2; time++) {
    expect((await one.log(id, 0, "first\n")).body).toEqual({ size: time === 0 ? 6 : 13 });
    expect((await one.log(id, 6, "second\n")).body).toEqual({ size: 13 });
    const events = [{ no: 1, kind: "started" }, { no: 2, kind: "session", id: "s1", usage: NO_USAGE }];
    expect((await one.events(id, events)).status).toBe(200);
  }
  expect((await one.log(id, 3, "st\nsecond\nthird\n")).body).toEqual({ size: 19 });
  // If the log has a gap, the service answers with the offset to continue from.
  expect((await one.log(id, 30, "a gap")).body).toEqual({ size: 19 });
  expect((await one.log(id, 0, "not mine", { epoch: 7 })).status).toBe(409);
  for (const reply of [await other.log(id, 0, "lies\n"), await other.events(id, []), await other.end(id)]) {
    expect(reply.status).toBe(409);
  }
  // A late report with an older number than the stored ones.
  expect((await one.events(id, [{ no: 1, kind: "session", id: "old", usage: NO_USAGE }])).status).toBe(200);
  expect((await app.call(`GET /api/executions/${id}`)).session_id).toBe("s1");
  // If the runner dies now, the next attempt resumes this session.
  expect(await app.db.read("select session_id from session_context")).toEqual([{ session_id: "s1" }]);
  const started = await app.db.read("select 1 from journal where kind = 'execution.started'");
  expect(started).toHaveLength(1);

  expect((await one.end(id, { text: "mine" })).status).toBe(200);
  expect((await one.end(id, { text: "again" })).status).toBe(200);
  expect((await one.log(id, 19, "late\n")).status).toBe(409);
  expect(await app.call(`GET /api/executions/${id}`)).toMatchObject({ status: "completed", result: "mine" });
  expect((await app.call(`GET /api/tasks/${task}`)).status).toBe("completed");
  expect(await app.call(`GET /api/executions/${id}/logs`)).toBe("first\nsecond\nthird\n");
});

it("after its lease a run belongs to another runner, and late reports change nothing [RUN-1]", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const worker = await createRemoteWorker(app, "echo");
  const task = await createTask(app, worker, "hello");
  const id = (await runner.claim()).body.run.execution.execution_id;
  expect((await runner.beat([id])).body.runs).toMatchObject([{ id, stop: "" }]);
  const { waits } = app.server.parts;
  waits.begin(id);
  await app.db.write([{ sql: "update remote_run set lease_until = 1", args: [], wakeup: "rescuer" }]);
  await waitUntilLost(app, id);
  expect(waits.count([id])).toBe(0);
  expect((await runner.beat([id])).body.runs).toEqual([]);
  expect((await runner.end(id, { text: "too late" })).status).toBe(409);
  expect(await app.call(`GET /api/tasks/${task}`)).toMatchObject({ status: "pending", attempt: 1 });
  const next = await runner.claim();
  expect(next.body.run.execution).toMatchObject({ task_id: task, attempt: 2 });
});

it("a run accepts nothing after the end of its lease, even before it is lost [RUN-1]", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const id = (await runner.claim()).body.run.execution.execution_id;
  // The lease has expired and the rescuer has not run yet, as if another process had started as this runner.
  await app.db.write([{ sql: "update remote_run set lease_until = 0", args: [] }]);
  const replies = [
    await runner.log(id, 0, "late\n"),
    await runner.events(id, [{ no: 1, kind: "session", id: "late", usage: NO_USAGE }]),
  ];
  expect(replies.map(({ status }) => status)).toEqual([409, 409]);
});

it("a runner is one process at a time; replaced and outdated processes get nothing (contract 18)", async () => {
  await using app = await openApp();
  const one = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const id = (await one.claim()).body.run.execution.execution_id;
  const elsewhere = await new FakeRunner(app, one.token).claim({ wait_ms: 0 });
  expect([elsewhere.status, elsewhere.body.detail]).toEqual([
    409,
    expect.stringContaining("another process uses this name"),
  ]);
  expect((await one.beat([id])).body.runs).toHaveLength(1);
  // The same directory: the earlier process has ended, and its runs are lost.
  const restarted = new FakeRunner(app, one.token, one.place);
  expect((await restarted.claim({ wait_ms: 0 })).status).toBe(200);
  for (const reply of [await one.beat([id]), await one.claim({ wait_ms: 0 }), await one.end(id)]) {
    expect(reply.status).toBe(409);
  }
  expect((await restarted.beat([id])).body.runs).toEqual([]);
  await waitUntilLost(app, id);
  const old = await restarted.claim({ protocol: 1_000, wait_ms: 0 });
  expect([old.status, old.body.detail]).toEqual([409, expect.stringContaining("Install")]);
});

it("a task names the missing runner, and other work directories continue (contract 18)", async () => {
  await using app = await openApp();
  const away = await createRemoteWorker(app, "echo");
  const task = await createTask(app, away, "hello");
  const reason = async () => (await app.call(`GET /api/tasks/${task}`)).reason as string;
  await waitUntil("it is held", async () => /no runner with the labels x exists/.test(await reason()));
  expect((await app.call(`GET /api/tasks/${task}`)).held_by).toMatchObject({ kind: "runner", id: "x" });
  const here = (await app.call("POST /api/workers", { name: "Here" })).id;
  const other = await createTask(app, here, "hi");
  await waitUntilCompleted(app, other);

  const runner = await createFakeRunner(app);
  await waitUntil("it is known", async () => /has the engine echo/.test(await reason()));
  await app.call("POST /api/runners/r1/drain", {});
  expect((await runner.claim({ wait_ms: 0 })).body.run).toBeNull();
  await waitUntil("it drains", async () => /draining/.test(await reason()));
  await app.call("POST /api/runners/r1/drain", { draining: false });
  expect((await runner.claim()).body.run.execution.task_id).toBe(task);

  const admin = await createRemoteWorker(app, "echo", { scopes: ["*:*"] });
  const barred = await createTask(app, admin, "hello");
  await waitUntil(
    "it may not",
    async () => /allow-admin/.test((await app.call(`GET /api/tasks/${barred}`)).reason),
  );
});

it("a worker's tasks go to its home only, until it gets another one (contract 18)", async () => {
  await using app = await openApp();
  const [one, two] = [await createFakeRunner(app), await createFakeRunner(app, "r2")];
  await app.call("POST /api/runners", { name: "gpu", labels: ["gpu"] });
  const worker = await createRemoteWorker(app, "echo");
  await createTask(app, worker, "first");
  const first = await one.claim();
  expect((await app.call(`GET /api/workers/${worker}`)).home).toBe("r1");
  expect((await app.send(`POST /api/workers/${worker}/rehome`, { home: "r2" })).status).toBe(409);
  await one.end(first.body.run.execution.execution_id);
  const task = await createTask(app, worker, "second");
  expect((await two.claim({ wait_ms: 300 })).body.run).toBeNull();
  // Each token gets the runs of its labels.
  const refused = await app.send(`POST /api/workers/${worker}/rehome`, { home: "gpu" });
  expect([refused.status, refused.body.detail]).toEqual([
    400,
    expect.stringContaining("lacks the label x"),
  ]);
  await app.call(`POST /api/workers/${worker}/rehome`, { home: "r2" });
  expect((await two.claim()).body.run.execution.task_id).toBe(task);
});

it("a worker that starts a run during a change of its home keeps the home (contract 18.3)", async () => {
  await using app = await openApp();
  const one = await createFakeRunner(app);
  await createFakeRunner(app, "r2");
  const worker = await createRemoteWorker(app, "echo");
  const { read } = app.db;
  // Directly after the read of the open runs.
  app.db.read = async (sql, ...more) => {
    const rows = await read.call(app.db, sql, ...more);
    if (sql.includes("select id from execution where worker_id")) {
      app.db.read = read;
      await createTask(app, worker, "hello");
      await one.claim();
    }
    return rows as never;
  };
  expect((await app.send(`POST /api/workers/${worker}/rehome`, { home: "r2" })).status).toBe(409);
  expect((await app.call(`GET /api/workers/${worker}`)).home).toBe("r1");
});

it("a cancelled run is ended by its runner after the next beat (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const id = (await runner.claim()).body.run.execution.execution_id;
  const cancelled = app.call(`POST /api/executions/${id}/cancel`, {});
  await waitUntil(
    "the beat requests the end",
    async () => (await runner.beat([id])).body.runs[0]?.stop === "cancelled",
  );
  await runner.end(id, { status: "failed", failure: "cancelled" }, "cancelled");
  expect(await cancelled).toMatchObject({ status: "failed", failure: "cancelled" });
});

it("a repeated claim renews the lease; the first answer has the original lease (contract 18.6)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const sentAt = Date.now();
  const lease = async () =>
    Number((await app.db.first<{ at: number }>("select lease_until as at from remote_run"))?.at);
  const { lease_ms } = (await runner.claim({ request_id: ID })).body;
  expect(await lease()).toBeGreaterThanOrEqual(sentAt + lease_ms);
  // As if the answer had been lost, and a minute had passed.
  const until = Date.now() + 60_000;
  await app.db.write([{ sql: "update remote_run set lease_until = ?", args: [until] }]);
  const again = Date.now();
  expect((await runner.claim({ request_id: ID })).body.run).not.toBeNull();
  expect(await lease()).toBeGreaterThanOrEqual(again + lease_ms);
});

it("a log of a runner can be followed, and is complete before its outcome is stored [DUR-9]", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const id = (await runner.claim()).body.run.execution.execution_id;
  const headers = { authorization: `Bearer ${await app.token()}` };
  // The headers arrive before the run ends.
  const response = await fetch(`${app.url}/api/executions/${id}/logs?follow=true`, { headers });
  await runner.log(id, 0, "one\ntwo\nthree\n");
  const { write } = app.db;
  let before = "";
  app.db.write = async (statements, ...more) => {
    if (statements.some(({ sql }) => sql.includes("set lease_until = null, reported = 1"))) {
      before = await app.call(`GET /api/executions/${id}/logs`);
    }
    return await write.call(app.db, statements, ...more);
  };
  expect((await runner.end(id)).status).toBe(200);
  app.db.write = write;
  for (const log of [before, await response.text(), await app.call(`GET /api/executions/${id}/logs`)]) {
    expect(log).toBe("one\ntwo\nthree\n");
  }
});

it("a run whose lease is lost while its order is built is not in the answer (contract 18.6)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  expect((await runner.claim({ request_id: ID })).body.run).not.toBeNull();
  await app.db.write([{
    sql: `create trigger lease_lost before update of lease_until on remote_run
      begin select raise(ignore); end`,
    args: [],
  }]);
  expect((await runner.claim({ request_id: ID, wait_ms: 0 })).body.run).toBeNull();
});

it("an end that arrives while its lease is lost changes nothing (reliability RUN-1)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const task = await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const id = (await runner.claim()).body.run.execution.execution_id;
  const { write } = app.db;
  // After its row was read.
  app.db.write = async (statements, ...more) => {
    if (!statements.some(({ sql }) => sql.includes("reported = 1"))) {
      return await write.call(app.db, statements, ...more);
    }
    app.db.write = write;
    await app.db.write([{ sql: "update remote_run set lease_until = 0", args: [] }]);
    return await app.db.write(statements, ...more);
  };
  expect((await runner.end(id)).status).toBe(409);
  expect((await app.call(`GET /api/executions/${id}`)).completed_at).toBeNull();
  expect((await app.call(`GET /api/tasks/${task}`)).status).toBe("running");
});

const ID = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const NO_USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };

it("a claim waits for at most a quarter of a lease, because leases count from its sending (contract 18.6)", async () => {
  await using app = await openApp({ leaseTimes: { lease_ms: 600, beat_ms: 100, margin_ms: 10 } });
  const one = await createFakeRunner(app);
  const began = performance.now();
  expect((await one.claim({ wait_ms: 20_000 })).body).toMatchObject({ run: null, lease_ms: 600 });
  expect(performance.now() - began).toBeLessThan(15_000);
});

it("a run returned by a stopping runner uses up no attempt, and names the stopped runner (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const task = await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const id = (await runner.claim()).body.run.execution.execution_id;
  expect((await runner.end(id, { status: "failed" }, "shutdown")).status).toBe(200);
  const execution = await app.call(`GET /api/executions/${id}`);
  expect(execution).toMatchObject({
    status: "failed",
    failure: "server_lost",
    error: expect.stringMatching(/^its runner was stopped/),
  });
  const next = await runner.claim();
  expect(next.body.run.execution).toMatchObject({ task_id: task, attempt: 1 });
});

it("a run that is returned repeatedly is finally lost, and an end has a known reason (contract 18) [RUN-1]", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const task = await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  const errors: string[] = [];
  for (let i = 0; i < 21; i++) {
    const { execution_id: id, attempt } = (await runner.claim()).body.run.execution;
    expect(attempt).toBe(1);
    expect((await runner.end(id, { status: "failed" }, "because")).status).toBe(400);
    expect((await runner.end(id, { status: "failed" }, "shutdown")).status).toBe(200);
    errors.push((await app.call(`GET /api/executions/${id}`)).error.slice(0, 22));
  }
  expect(errors).toEqual([...Array(20).fill("its runner was stopped"), "its runner lost contac"]);
  const after = await app.call(`GET /api/tasks/${task}`);
  expect(after).toMatchObject({
    status: "pending",
    attempt: 1,
    reason: "attempt 1 of 3 was lost with its runner",
  });
});

it("a cancelled run ends no other one (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const ids: string[] = [];
  for (const text of ["one", "two"]) {
    await createTask(app, await createRemoteWorker(app, "echo"), text);
    ids.push((await runner.claim()).body.run.execution.execution_id);
  }
  const [one = "", two = ""] = ids;
  const cancelled = app.call(`POST /api/executions/${one}/cancel`, {});
  await waitUntil("it is marked", async () => {
    const row = await app.db.first<{ stop: string }>("select stop from remote_run where execution_id = ?", [
      one,
    ]);
    return row?.stop === "cancelled";
  });
  const { runs } = (await runner.beat(ids)).body;
  expect(runs.find(({ id }: { id: string }) => id === two)).toMatchObject({ stop: "" });
  await runner.end(one, { status: "failed", failure: "cancelled" }, "cancelled");
  await cancelled;
});

it("a start report gives no lease to an ended run [RUN-3]", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
  await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(dataDir, { recursive: true }) };
  const app = await openApp({ dataDir });
  const runner = await createFakeRunner(app);
  await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  await runner.end((await runner.claim()).body.run.execution.execution_id);
  await app.stop();
  await using again = await openApp({ dataDir });
  expect(await again.db.read("select lease_until from remote_run")).toEqual([{ lease_until: null }]);
});
