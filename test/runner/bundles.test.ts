import { expect, it } from "vitest";
import { RunnerLoop } from "../../src/runner/loop.ts";
import { type App, openApp } from "../harness/app.ts";
import { expectCounters } from "../harness/counters.ts";
import { FakeService, problem, runOptionsOf, wireOrder } from "../harness/fake_service.ts";
import { awayWorker, FakeRunner, taskFor, waitingClaims } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";

async function newRunner(app: App, name = "r1"): Promise<FakeRunner> {
  const runner = new FakeRunner(app, (await app.call("POST /api/runners", { name, labels: ["x"] })).token);
  await runner.claim({ wait_ms: 0 });
  return runner;
}

const requests = (count: number) => Array.from({ length: count }, () => crypto.randomUUID());

/** One claim for all of `count` tasks of as many workers; answers the ids of its runs. */
async function runsOf(app: App, runner: FakeRunner, count: number): Promise<string[]> {
  for (let n = 0; n < count; n++) await taskFor(app, await awayWorker(app, "echo"), `text ${n}`);
  const { run, more } = (await runner.claim({ more: requests(count - 1), max_runs: 100 })).body;
  const ids = [run, ...more].map(({ execution }) => execution.execution_id);
  expect(new Set(ids).size).toBe(count);
  return ids;
}

it("one claim gets several short runs, each of its requests one, and the same ones when it is repeated (contract 18.6)", async () => {
  await using app = await openApp();
  const [one, other] = [await newRunner(app), await newRunner(app, "r2")];
  for (const text of ["one", "two", "three"]) await taskFor(app, await awayWorker(app, "echo"), text);
  const claim = { request_id: crypto.randomUUID(), more: requests(3), engines: ECHO };
  const runs = ({ body: { run, more } }: Awaited<ReturnType<FakeRunner["claim"]>>) =>
    [run, ...more].map(({ execution }) => execution).sort((a, b) => a.execution_id < b.execution_id ? -1 : 1);
  const first = runs(await one.claim(claim));
  expect(first.map(({ instruction }) => instruction).sort()).toEqual(["one", "three", "two"]);
  // An engine inside the runner calls nobody.
  expect((await one.claim(claim)).body.run).toMatchObject({ token: "", briefing: null, files: [] });
  expect(runs(await one.claim(claim))).toEqual(first);
  expect((await other.claim({ ...claim, wait_ms: 0 })).body).toMatchObject({ run: null, more: [] });
  const rows = await app.db.read<{ request_id: string }>("select request_id from remote_run");
  expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(3);
  for (const { execution_id } of first) expect((await one.end(execution_id)).status).toBe(200);
  expect((await one.claim({ ...claim, wait_ms: 0 })).body).toMatchObject({ run: null, more: [] });
});

it("a run whose lease was lost while its order was made is left out, and the others of its claim are not (contract 18.6)", async () => {
  await using app = await openApp();
  const runner = await newRunner(app);
  for (let n = 0; n < 3; n++) await taskFor(app, await awayWorker(app, "echo"), `text ${n}`);
  const claim = { request_id: crypto.randomUUID(), more: requests(2), max_runs: 100 };
  const { run, more } = (await runner.claim(claim)).body;
  const ids = [run, ...more].map(({ execution }) => execution.execution_id);
  expect(ids).toHaveLength(3);
  const [lost = "", ...others] = ids;
  await app.db.write([{
    sql:
      `create trigger lease_lost before update of lease_until on remote_run when old.execution_id = '${lost}'
      begin select raise(ignore); end`,
    args: [],
  }]);
  const again = (await runner.claim(claim)).body;
  const left = [again.run, ...again.more].map(({ execution }) => execution.execution_id);
  expect(left.sort()).toEqual(others.sort());
});

const ECHO = [{ name: "echo", agent: false, external: false }];

it("a run of a program, and one with a long instruction, goes to the first request of a claim only (contract 18.6)", async () => {
  await using app = await openApp();
  const runner = await newRunner(app);
  for (const [external, text] of [[true, "short"], [false, "x".repeat(17_000)]] as const) {
    const engines = [{ name: "echo", agent: false, external }];
    for (let n = 0; n < 2; n++) await taskFor(app, await awayWorker(app, "echo"), text);
    for (let n = 0; n < 2; n++) {
      const { run, more } = (await runner.claim({ engines, more: requests(3) })).body;
      expect(more).toEqual([]);
      expect((await runner.end(run.execution.execution_id)).status).toBe(200);
    }
  }
});

it("claims that may take many share what may go anywhere (contract 18)", async () => {
  await using app = await openApp();
  const runners = [await newRunner(app), await newRunner(app, "r2")];
  const claims = await waitingClaims(
    app,
    runners.map((runner) => () => runner.claim({ more: requests(3) })),
  );
  const tasks = [];
  for (let n = 0; n < 4; n++) {
    const worker_id = await awayWorker(app, "echo");
    tasks.push({ worker_id, message_id: "script", type: "immediate", instruction: `text ${n}` });
  }
  await app.call("POST /api/tasks/batch", { tasks });
  const counts = (await Promise.all(claims)).map(({ body: { run, more } }) => [run, ...more].length);
  expect(counts).toEqual([2, 2]);
});

/** Everything that runs leave, without ids and times. */
function left(app: App) {
  return Promise.all([
    `select status, result, error, failure, exit_code, attempt, run_no, engine, session_id = session_key as session,
      input_tokens, output_tokens, cost_usd, verify_status, verify_attempts,
      started_at >= created_at and started_at <= completed_at as started
    from execution order by result`,
    `select status, reason, attempt, run_count, next_run_at, due_at, queued_at, held
    from task order by instruction`,
    "select lease_until, events, stop, reported from remote_run",
    `select kind, actor, data, session_key <> '' as session, task_id <> '' as task, execution_id <> '' as execution
    from journal where kind like 'execution.%' or kind like 'task.%' or kind = 'session.idle' order by kind, seq`,
    "select content, status, source_type from outbound_message order by content",
    "select text from execution_log order by text",
    "select tokens, ms, nano_usd from reservation",
    "select runs, tokens, nano_usd from ledger order by 1, 2, 3",
    "select name, key, value from counter order by 1, 2",
  ].map((sql) => app.db.read(sql)));
}

it("ends that are told together leave what they leave one by one, in one commit", async () => {
  const found = [];
  for (const together of [true, false]) {
    await using app = await openApp({ inMemory: true });
    const runner = await newRunner(app);
    for (const name of ["Ada", "Bo"]) {
      const worker = await app.call("POST /api/workers", { name, engine: "echo", runs_on: ["x"] });
      const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
      await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: `hello ${name}` });
    }
    await eventually(
      "both wait",
      async () => (await app.db.read("select 1 from task where status = 'pending'")).length === 2,
    );
    const { run, more } = (await runner.claim({ more: requests(1) })).body;
    const ends = [run, ...more].map(({ execution: { execution_id: id, instruction } }) => ({
      id,
      change: { text: `answer to ${/hello \w+/.exec(instruction)?.[0]}` },
    }));
    let commits = 0;
    const { write } = app.db;
    app.db.write = (statements, ...rest) => {
      if (statements.some(({ sql }) => sql.includes("into execution_log"))) commits++;
      return write.call(app.db, statements, ...rest);
    };
    if (together) {
      const { status, body } = await runner.outcomes(ends);
      expect([status, body.stored.sort()]).toEqual([200, ends.map(({ id }) => id).sort()]);
      // Told again, none of it is stored again, and each is answered as before.
      expect((await runner.outcomes(ends)).body).toEqual({ stored: [] });
    }
    for (const { id, change } of ends) {
      const log = `log of ${JSON.stringify(change)}\n`;
      expect((await runner.end(id, change, null, { log })).status).toBe(200);
    }
    expect(commits).toBe(together ? 1 : 2);
    app.db.write = write;
    expect(await app.call(`GET /api/executions/${run.execution.execution_id}/logs`)).toContain("answer to");
    await expectCounters(app.db);
    found.push(await left(app));
  }
  expect(found[0]).toEqual(found[1]);
});

it("what is unusual about an end is left for it to be told by itself, and keeps no other back (contract 18.6)", async () => {
  await using app = await openApp();
  const [runner, thief] = [await newRunner(app), await newRunner(app, "r2")];
  const all = await runsOf(app, runner, 9);
  const [good = "", ...others] = all;
  const [failed, stopped, used, resumed, noLog, notStarted, reported, old] = others as [string, ...string[]];
  await runner.events(reported ?? "", [{ no: 1, kind: "started" }]);
  expect((await thief.outcomes(all.map((id) => ({ id })))).body).toEqual({ stored: [] });
  const ends = [
    { id: good },
    { id: failed, change: { status: "failed", failure: "exit_code", error: "it broke" } },
    { id: stopped ?? "", interruption: "cancelled" },
    { id: used ?? "", change: { usage: { input_tokens: 7, output_tokens: null, cost_usd: null } } },
    { id: resumed ?? "", change: { sessionId: "s-1" } },
    { id: noLog ?? "", more: { log: undefined } },
    { id: notStarted ?? "", more: { ran_ms: null } },
    { id: reported ?? "" },
    { id: old ?? "", more: { epoch: 7 } },
    { id: crypto.randomUUID() },
  ];
  expect((await runner.outcomes(ends)).body).toEqual({ stored: [good] });
  for (const id of others) expect((await app.call(`GET /api/executions/${id}`)).completed_at).toBeNull();
  for (const id of others) expect((await runner.end(id)).status).toBe(200);
  await expectCounters(app.db);
});

it("where one of them was changed meanwhile none is stored together: a task that was cancelled, a lease that is over, a question (reliability RUN-1)", async () => {
  await using app = await openApp();
  const runner = await newRunner(app);
  const sqls = [
    "update task set status = 'cancelled' where execution_id = ?",
    "update remote_run set lease_until = 0 where execution_id = ?",
    `insert into question (id, session_key, worker_id, task_id, execution_id, message_id, asked_by, text, status, created_at, expires_at)
      select 'q', session_key, worker_id, task_id, id, message_id, worker_id, 'which?', 'open', 1, 9000000000000 from execution where id = ?`,
  ];
  for (const sql of sqls) {
    const ids = await runsOf(app, runner, 2);
    const { write } = app.db;
    // After its row was read.
    app.db.write = async (statements, ...more) => {
      if (!statements.some(({ sql }) => /reported = 1\s+from json_each/.test(sql))) {
        return await write.call(app.db, statements, ...more);
      }
      app.db.write = write;
      await app.db.write([{ sql, args: [ids[1] ?? ""] }]);
      return await app.db.write(statements, ...more);
    };
    expect((await runner.outcomes(ids.map((id) => ({ id })))).body, sql).toEqual({ stored: [] });
    expect((await app.call(`GET /api/executions/${ids[0]}`)).completed_at, sql).toBeNull();
    expect((await runner.end(ids[0] ?? "")).status).toBe(200);
  }
});

it("a runner tells ends that come together in one request, and by itself what that did not store", async () => {
  const root = await Deno.makeTempDir({ prefix: "svc-test-" });
  await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
  const [first, ...more] = [wireOrder(root), wireOrder(root), wireOrder(root)];
  const over = Promise.withResolvers<void>();
  const times = { epoch: 1, version: "v", lease_ms: 120_000, beat_ms: 10_000, margin_ms: 20_000 };
  await using service = new FakeService(async ({ path, text }, count) => {
    if (path.endsWith("/end")) return count === 1 ? problem(503, "unavailable") : Response.json({});
    if (path === "/api/runs/outcomes") {
      const ids = JSON.parse(text).ends.map(({ id }: { id: string }) => id);
      return count === 1 ? Response.json({ stored: ids.slice(0, 2) }) : problem(400, "invalid_request");
    }
    if (count > 1) await over.promise;
    return Response.json(count > 1 ? { ...times, run: null } : { ...times, run: first, more });
  });
  const options = { ...runOptionsOf(service.link, root), maxRuns: 8, place: crypto.randomUUID() };
  const loop = new RunnerLoop(options);
  const running = loop.run();
  await eventually("all are told", () => service.of("/end").length === 2 && loop.running === 0);
  // Runs came at once: the next claim is for as many as there is room for.
  await eventually("it claims again", () => service.of("/claim").length === 2);
  over.resolve();
  await loop.stop(0, new AbortController().signal);
  await running;
  const told = service.of("/outcomes").map(({ text }) => JSON.parse(text).ends.length);
  expect(told).toEqual([3, 1]);
  const claims = service.of("/claim").map(({ text }) => JSON.parse(text).more.length);
  expect(claims.slice(0, 2).map((count) => count > 0)).toEqual([false, true]);
});
