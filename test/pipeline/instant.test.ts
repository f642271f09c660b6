import { describe, expect, it } from "vitest";
import { type App, openApp } from "../harness/app.ts";
import { TestClock } from "../harness/clock.ts";
import { expectCounters } from "../harness/counters.ts";

const NOW = Date.parse("2026-01-05T08:00:00Z");

/** Everything that a run leaves, without the ids that are new each time. */
async function leftBy(app: App, taskId: string) {
  const one = (sql: string) => app.db.read(sql, [taskId]);
  const executions = await one("select * from execution where task_id = ?");
  const [execution] = executions;
  const log: string = await app.call(`GET /api/executions/${execution?.id}/logs`);
  const text = JSON.stringify({
    task: await one("select * from task where id = ?"),
    executions,
    events: await one(
      `select kind, at, session_key, worker_id, task_id, execution_id, message_id, actor, data, address
      from journal where task_id = ? order by seq`,
    ),
    replies: await one(
      `select session_key, content, status, source_type, source_id, message_id
      from outbound_message where execution_id = (select execution_id from task where id = ?)`,
    ),
    reserved: await app.db.read("select * from reservation"),
    log: log.replace(/^\S+Z /gm, "<time> "),
  });
  const names: [unknown, string][] = [[taskId, "<task>"], [execution?.id, "<execution>"], [
    execution?.run_id,
    "<run>",
  ]];
  return JSON.parse(names.reduce((said, [id, name]) => said.replaceAll(String(id), name), text));
}

async function give(app: App, workerId: string, instruction: string): Promise<string> {
  const body = { message_id: "script", worker_id: workerId, instruction, type: "immediate" };
  return (await app.call("POST /api/tasks", body)).id;
}

const ledger = (app: App) =>
  app.db.read("select target, runs, tokens, nano_usd from ledger order by target, runs");

/** Calls `before` with what is going to be written, whenever runs of an engine inside the service begin and end in one commit. */
function atInstants(app: App, before: (count: number) => Promise<void>): void {
  const { db } = app;
  const write = db.write.bind(db);
  let count = 0;
  db.write = async (statements) => {
    if (statements.some(({ sql }) => sql.includes("into execution_log"))) await before(++count);
    return await write(statements);
  };
}

describe("runs inside the service, from claim to outcome in one commit", () => {
  it("leave what they leave the long way", async () => {
    await using app = await openApp({ clock: new TestClock(NOW) });
    let instants = 0;
    atInstants(app, () => Promise.resolve(void instants++));
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
    const words = 'ünïcode \u{1F41D} "quoted"\n\tand more';
    const short = await give(app, worker.id, words);
    await app.settle();
    expect(instants).toBe(1);
    const afterOne = await ledger(app);
    // With a budget every run is claimed first.
    await app.call("POST /api/budgets", {
      name: "b",
      target: "global",
      unit: "runs",
      limit: 100,
      period: "24h",
    });
    const long = await give(app, worker.id, words);
    await app.settle();
    expect(instants).toBe(1);
    expect(await leftBy(app, short)).toEqual(await leftBy(app, long));
    expect(await ledger(app)).toEqual(
      afterOne.flatMap((row) => [row, { ...row, runs: 2 }]),
    );
    expect(afterOne.map(({ target }) => target)).toEqual([
      "engine:echo",
      "global",
      "session:cli:script",
      `worker:${worker.id}`,
    ]);
    const [{ execution_id }] = await app.db.read<{ execution_id: string }>(
      "select execution_id from task limit 1",
    ) as [
      { execution_id: string },
    ];
    expect(await app.call(`GET /api/executions/${execution_id}/logs?tail=1`)).toMatch(
      /^\S+Z \[completed\]\n$/,
    );
    expect(await app.call(`GET /api/executions/${execution_id}/logs?tail=0`)).toBe("");
    await expectCounters(app.db);
  });

  it("count what they count the long way, however many are stored together", async () => {
    const clock = new TestClock(NOW);
    await using app = await openApp({ clock });
    const commits: number[] = [];
    atInstants(app, (count) => Promise.resolve(void commits.push(count)));
    const workers: string[] = [];
    for (const name of ["a", "b", "c"]) {
      workers.push((await app.call("POST /api/workers", { name, engine: "echo", paused: true })).id);
    }
    const round = async () => {
      await app.db.write([{ sql: "update worker set paused = 1", args: [] }]);
      for (const id of workers) await give(app, id, "x");
      await app.settle();
      clock.advance(4_000);
      await app.db.write([{ sql: "update worker set paused = 0", args: [] }]);
      app.server.dispatcher.stage.wake();
      await app.settle();
      const rows = (sql: string) => app.db.read<Record<string, number>>(sql);
      return {
        ended: await rows("select value from counter where name = 'ended' and key = 'completed'"),
        usage: await rows("select executions, failed, ms, input_tokens from usage order by worker_id"),
        waited: await rows("select runs, ms, longest_ms from waited"),
        sums: await rows("select target, max(runs) as runs, max(ms) as ms from ledger group by target"),
      };
    };
    const short = await round();
    expect(commits).toEqual([1]);
    await app.call("POST /api/budgets", {
      name: "b",
      target: "global",
      unit: "runs",
      limit: 100,
      period: "24h",
    });
    const both = await round();
    expect(commits).toEqual([1]);
    expect(short).toMatchObject({
      ended: [{ value: 3 }],
      waited: [{ runs: 3, ms: 12_000, longest_ms: 4_000 }],
    });
    expect(both).toEqual({
      ended: [{ value: 6 }],
      usage: short.usage.map((row) => ({ ...row, executions: 2 })),
      waited: [{ runs: 6, ms: 24_000, longest_ms: 4_000 }],
      sums: short.sums.map((row) => ({ ...row, runs: 2 * (row.runs ?? NaN) })),
    });
    await expectCounters(app.db);
  });

  it("do not take place for a large text: its commit would hold everybody else up", async () => {
    await using app = await openApp();
    let instants = 0;
    atInstants(app, () => Promise.resolve(void instants++));
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
    const results: string[] = [];
    for (const size of [16_384, 16_385]) {
      const id = await give(app, worker.id, "x".repeat(size));
      await app.settle();
      const { execution_id } = await app.call(`GET /api/tasks/${id}`);
      results.push((await app.call(`GET /api/executions/${execution_id}`)).result);
    }
    expect(results.map((result) => result.length)).toEqual([16_384, 16_385]);
    expect(instants).toBe(1);
  });

  it("answer a conversation, once", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "hello" });
    await app.settle();
    const said = await app.call(`GET /api/local/sessions/${session.id}/messages`);
    expect(said.map(({ role, content }: { role: string; content: string }) => [role, content])).toEqual([
      ["user", "hello"],
      ["bee", "hello"],
    ]);
    const kinds = await app.db.read("select kind from journal where kind = 'session.idle'");
    expect(kinds).toHaveLength(1);
  });

  it("do not take place for a task that was cancelled meanwhile, and do for the others of its round", async () => {
    await using app = await openApp();
    const workers = [];
    for (const name of ["a", "b", "c"]) {
      workers.push(await app.call("POST /api/workers", { name, engine: "echo", paused: true }));
    }
    const ids: string[] = [];
    for (const { id } of workers) ids.push(await give(app, id, "x"));
    await app.settle();
    atInstants(app, async (count) => {
      if (count === 1) await app.call(`POST /api/tasks/${ids[1]}/cancel`);
    });
    for (const { id } of workers) {
      await app.db.write([{ sql: "update worker set paused = 0 where id = ?", args: [id] }]);
    }
    app.server.dispatcher.stage.wake();
    await app.until("task.completed", 2);
    await app.settle();
    const rows = await app.db.read(
      "select status, run_count, (select count(*) from execution where task_id = task.id) as runs from task order by id",
    );
    expect(rows).toEqual([
      { status: "completed", run_count: 1, runs: 1 },
      { status: "cancelled", run_count: 0, runs: 0 },
      { status: "completed", run_count: 1, runs: 1 },
    ]);
    expect(await app.db.read("select * from reservation")).toEqual([]);
  });

  it("are claimed one by one when the commit fails, and run once", async () => {
    await using app = await openApp();
    atInstants(
      app,
      (count) => count === 1 ? Promise.reject(new Error("the disk is away")) : Promise.resolve(),
    );
    const worker = await app.call("POST /api/workers", { name: "a", engine: "echo" });
    const id = await give(app, worker.id, "x");
    await app.settle();
    const [run, ...more] = await app.call(`GET /api/executions?worker_id=${worker.id}`);
    expect([run, more]).toMatchObject([{ task_id: id, status: "completed", result: "x" }, []]);
    expect(await app.call(`GET /api/executions/${run.id}/logs`)).toContain(" x\n");
  });

  it("lose their logs with their records", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "a", engine: "echo" });
    await give(app, worker.id, "x");
    await app.settle();
    expect(await app.db.read("select text from execution_log")).toHaveLength(1);
    await app.db.write([{ sql: "delete from execution", args: [] }]);
    expect(await app.db.read("select text from execution_log")).toEqual([]);
  });
});
