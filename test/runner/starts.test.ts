import { expect, it } from "vitest";
import { type App, openApp } from "../harness/app.ts";
import { awayWorker, FakeRunner, taskFor, waitingClaims } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";

/** So many runners, each with a claim that waits. */
async function waiting(app: App, count: number) {
  const runners: FakeRunner[] = [];
  for (let n = 0; n < count; n++) {
    const { token } = await app.call("POST /api/runners", { name: `r${n}`, labels: ["x"] });
    runners.push(new FakeRunner(app, token));
  }
  for (const runner of runners) await runner.claim({ wait_ms: 0 });
  return await waitingClaims(app, runners.map((runner) => () => runner.claim()));
}

/** Everything that the start of runs has left, but for what is another each time. */
async function left(app: App) {
  const tables = {
    execution: "status, attempt, engine, instruction, run_no, session_id, worker_name <> '' as named",
    task: "status, attempt, run_count, reason, held, execution_id is not null as known",
    remote_run: "epoch, lease_until > 0 as open, events, stop, reported",
    reservation: "targets like '%global%' as targets, tokens, ms, nano_usd",
    worker: "home <> '' as home",
    counter: "name, key, value",
    waited: "runs",
  };
  const rows = await Promise.all(
    Object.entries(tables).map(([table, columns]) => {
      const order = columns.split(", ").map((_, at) => at + 1);
      return app.db.read(`select ${columns} from ${table} order by ${order}`);
    }),
  );
  return rows;
}

it("tasks that start on runners in one commit leave what they leave one by one (contract 18)", async () => {
  const found = [];
  for (const together of [true, false]) {
    await using app = await openApp({ inMemory: true });
    const claims = await waiting(app, 3);
    const tasks = [];
    for (const n of [0, 1, 2]) {
      const worker_id = await awayWorker(app, "echo");
      tasks.push({ worker_id, message_id: "script", type: "immediate", instruction: `text ${n}` });
    }
    let commits = 0;
    const { write } = app.db;
    app.db.write = (statements, ...more) => {
      if (statements.some(({ sql }) => sql.includes("insert into remote_run"))) commits++;
      return write.call(app.db, statements, ...more);
    };
    if (together) await app.call("POST /api/tasks/batch", { tasks });
    for (const [n, { worker_id, instruction }] of together ? [] : tasks.entries()) {
      await taskFor(app, worker_id, instruction);
      const started = async () => (await app.db.read("select 1 from execution")).length === n + 1;
      await eventually("it starts", started);
    }
    const runs = (await Promise.all(claims)).map(({ body }) => body.run);
    expect(runs.map(({ execution }) => execution.instruction).sort()).toEqual(["text 0", "text 1", "text 2"]);
    expect(new Set(runs.map(({ work_dir }) => work_dir)).size).toBe(3);
    expect(commits).toBe(together ? 1 : 3);
    app.db.write = write;
    found.push(await left(app));
  }
  expect(found[0]).toEqual(found[1]);
});

it("one that cannot start on its runner keeps none of the others back (contract 18)", async () => {
  await using app = await openApp({ inMemory: true });
  const claims = await waiting(app, 3);
  const tasks = [];
  for (const n of [0, 1, 2]) {
    const worker_id = await awayWorker(app, "echo");
    tasks.push({ worker_id, message_id: "script", type: "immediate", instruction: `text ${n}` });
  }
  const refuse = `create trigger broken before update of status on task when new.instruction = 'text 1' begin
    select raise(abort, 'this row is broken'); end`;
  await app.db.write([{ sql: refuse, args: [] }]);
  await app.call("POST /api/tasks/batch", { tasks });
  await eventually("the others start", async () => {
    const rows = await app.db.read("select instruction from execution order by 1");
    return rows.length === 2 && rows[0]?.instruction === "text 0" && rows[1]?.instruction === "text 2";
  });
  await app.db.write([{ sql: "drop trigger broken", args: [] }]);
  const bodies = (await Promise.all(claims)).map(({ body }) => body.run?.execution.instruction);
  expect(bodies).toEqual(expect.arrayContaining(["text 0", "text 2"]));
});
