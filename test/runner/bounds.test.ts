import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import {
  createFakeRunner,
  createRemoteWorker,
  createTask,
  waitUntilCompleted,
  waitUntilLost,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const WILD = { input_tokens: 9e15, output_tokens: -7, cost_usd: 1e10 };

it("extreme usage prevents neither storing an outcome nor reading a sum (contract 14, contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const worker = await createRemoteWorker(app, "echo");
  for (const text of ["one", "two"]) {
    await createTask(app, worker, text);
    const id = (await runner.claim()).body.run.execution.execution_id;
    const events = [{ no: 1, kind: "usage", usage: WILD }];
    expect((await runner.events(id, events)).status).toBe(200);
    expect((await runner.end(id, { usage: WILD, sessionUsage: WILD })).status).toBe(200);
    expect((await app.call(`GET /api/executions/${id}`)).usage)
      .toEqual({ input_tokens: 1e12, output_tokens: 0, cost_usd: 1e4 });
  }
  const sums = await app.db.read("select tokens, nano_usd from ledger where target = 'global' order by runs");
  expect(sums).toEqual([1, 2].map((runs) => ({ tokens: runs * 1e12, nano_usd: runs * 1e13 })));
});

it("a lost run that cannot be ended blocks neither later ones nor the start [RUN-1]", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const ids: string[] = [];
  for (const text of ["one", "two"]) {
    await createTask(app, await createRemoteWorker(app, "echo"), text);
    ids.push((await runner.claim()).body.run.execution.execution_id);
  }
  const [bad = "", good = ""] = ids;
  const refuse = `create trigger broken before update of status on execution when new.id = '${bad}' begin
    select raise(abort, 'this row is broken'); end`;
  await app.db.write([{ sql: refuse, args: [] }]);
  await app.db.write([{ sql: "update remote_run set lease_until = 1", args: [], wakeup: "rescuer" }]);
  await waitUntilLost(app, good);
  expect((await app.call(`GET /api/executions/${bad}`)).failure).toBe("");
});

it("a rate limit on a runner delays its task and blocks nothing else (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const task = await createTask(app, await createRemoteWorker(app, "echo"), "one");
  const id = (await runner.claim()).body.run.execution.execution_id;
  const reset = { inMs: 7 * 86_400_000 };
  await runner.end(id, { status: "failed", failure: "rate_limited", error: "enough", reset });
  expect(await app.call(`GET /api/tasks/${task}`)).toMatchObject({
    status: "pending",
    attempt: 0,
    held_by: null,
    reason: expect.stringContaining("rate limited"),
  });
  expect(await app.db.read("select 1 from rate_limit")).toEqual([]);
  const here = (await app.call("POST /api/workers", { name: "Here", engine: "echo" })).id;
  const other = await createTask(app, here, "two");
  await waitUntilCompleted(app, other);
  expect((await runner.claim({ wait_ms: 0 })).body.run).toBeNull();
});

it("session ids of runners are validated, and results and errors have the limits of local runs (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const worker = await createRemoteWorker(app, "echo");
  await createTask(app, worker, "one");
  const id = (await runner.claim()).body.run.execution.execution_id;
  const told = { kind: "session", usage: NO_USAGE };
  await runner.events(id, [{ no: 1, ...told, id: "good-1" }, { no: 2, ...told, id: "--exec=evil" }]);
  expect((await app.call(`GET /api/executions/${id}`)).session_id).toBe("good-1");
  const long = { text: "r".repeat(300_000), error: "e".repeat(10_000) };
  await runner.end(id, { ...long, sessionId: "../../evil" });
  const { result, error, session_id } = await app.call(`GET /api/executions/${id}`);
  expect([result.length < 210_000, error.length, session_id]).toEqual([true, 4_096, "cli:script"]);
  const contexts = await app.db.read("select session_id from session_context where worker_id = ?", [worker]);
  expect(contexts).toEqual([{ session_id: "good-1" }]);
  // Another runner: the sessions stayed on the first one.
  await app.call(`PUT /api/workers/${worker}`, { runs_on: ["y"] });
  expect(await app.db.read("select 1 from session_context where worker_id = ?", [worker])).toEqual([]);
  expect((await app.call(`GET /api/workers/${worker}`)).home).toBe("");
});

const NO_USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };

it("a limit of the service's own login blocks nothing on runners (contract 18)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
  const sql = "insert into rate_limit values ('echo', ?, 1, 0, 1)";
  await app.db.write([{ sql, args: [Date.now() + 3_600_000] }]);
  const here = await createTask(app, (await app.call("POST /api/workers", { name: "Here" })).id, "hello");
  const there = await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  expect((await runner.claim()).body.run.execution).toMatchObject({ task_id: there });
  await waitUntil(
    "here it waits",
    async () => (await app.call(`GET /api/tasks/${here}`)).held_by?.kind === "engine",
  );
});
