import { describe, expect, it } from "vitest";
import type { Value } from "../../../src/store/db/database.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { startRun } from "../../harness/service/run.ts";

const NOW = Date.parse("2026-01-05T08:00:00Z");
const QUARTER_MS = 900_000;

async function withTasks(app: App, count: number) {
  const worker = await app.call("POST /api/workers", { name: "Ada", paused: true });
  const other = await app.call("POST /api/workers", { name: "Bob", paused: true });
  const make = (worker_id: string, more: object) =>
    app.call("POST /api/tasks", {
      message_id: "script",
      worker_id,
      instruction: "do it",
      type: "immediate",
      ...more,
    });
  const tasks = [];
  for (let number = 0; number < count; number++) tasks.push(await make(worker.id, {}));
  const cron = await make(other.id, { type: "scheduled", cron: "0 5 * * *", message_id: "other" });
  return { worker, other, tasks, cron };
}

describe("GET /api/queue (contract 17)", () => {
  it("lists pending, scheduled and running tasks of all workers, newest first, and no ended ones", async () => {
    await using app = await openApp({ inMemory: true });
    const { worker, other, tasks, cron } = await withTasks(app, 3);
    await app.call(`POST /api/tasks/${tasks[0].id}/cancel`, {});
    const ids = async (query = "") =>
      (await app.call(`GET /api/queue${query}`)).map((task: { id: string }) => task.id);
    expect(await ids()).toEqual([cron.id, tasks[2].id, tasks[1].id]);
    expect(await ids(`?worker_id=${other.id}`)).toEqual([cron.id]);
    expect(await ids(`?worker_id=${other.id},${worker.id}&status=pending`)).toEqual([
      tasks[2].id,
      tasks[1].id,
    ]);
    expect(await ids("?type=scheduled")).toEqual([cron.id]);
    expect(await ids("?session_key=cli:other")).toEqual([cron.id]);
    const page = await app.send("GET /api/queue?page_size=1");
    expect(page.headers.get("x-total-count")).toBe("3");
    expect(page.headers.get("link")).toContain(`cursor=${cron.id}`);
    expect(await app.call("GET /api/queue?status=completed")).toHaveLength(0);
  });
});

describe("POST /api/queue/cancel (contract 17)", () => {
  it("cancels the matching tasks if their number is the expected one, with an event for each", async () => {
    await using app = await openApp({ inMemory: true });
    const { worker, tasks, cron } = await withTasks(app, 3);
    const filter = { worker_id: worker.id };
    const wrong = await app.send("POST /api/queue/cancel", { filter, expected: 2 });
    expect([wrong.status, wrong.body.detail]).toEqual([
      409,
      "Cannot cancel: 3 tasks match, but 2 were expected. List the tasks again.",
    ]);
    expect((await app.call("GET /api/queue")).length).toBe(4);
    expect(await app.call("POST /api/queue/cancel", { filter, expected: 3 })).toEqual({ cancelled_tasks: 3 });
    expect((await app.call("GET /api/queue")).map((task: { id: string }) => task.id)).toEqual([cron.id]);
    const events = await app.call("GET /api/events?kind=task.cancelled", undefined, {
      accept: "application/json",
    });
    expect(events.map((event: { task_id: string }) => event.task_id).sort()).toEqual(
      tasks.map(({ id }) => id).sort(),
    );
    expect(await app.call("POST /api/queue/cancel", { filter: { type: "scheduled" }, expected: 1 })).toEqual({
      cancelled_tasks: 1,
    });
  });

  it("refuses an expected number of 0 or above 1,000, a missing filter, and a status that cannot be cancelled", async () => {
    await using app = await openApp({ inMemory: true });
    const running = { filter: { status: "running" }, expected: 1 };
    const bodies = [{ filter: {}, expected: 0 }, { filter: {}, expected: 1_001 }, { expected: 1 }, running];
    for (const body of bodies) {
      expect([body, (await app.send("POST /api/queue/cancel", body)).status]).toEqual([body, 400]);
    }
  });
});

describe("POST /api/executions/:id/retry (contract 17)", () => {
  async function withChat(app: App) {
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const chat = await app.call("POST /api/local/sessions", { worker_id });
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "say it again" });
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    return { chat, execution, retry: () => app.send(`POST /api/executions/${execution.id}/retry`, {}) };
  }

  it("creates a task with the same worker, instruction and conversation, unless the execution runs or the worker is gone", async () => {
    await using app = await openApp();
    const { chat, execution, retry } = await withChat(app);
    const again = await retry();
    expect([again.status, again.body]).toEqual([
      201,
      expect.objectContaining({
        worker_id: execution.worker_id,
        instruction: "say it again",
        session_key: `local:${chat.id}`,
        type: "immediate",
      }),
    ]);
    await app.settle();
    const history = await app.call(`GET /api/local/sessions/${chat.id}/messages`);
    expect(history.map((message: { content: string }) => message.content)).toEqual(
      Array(3).fill("say it again"),
    );
    await app.call(`DELETE /api/workers/${execution.worker_id}`);
    const gone = await retry();
    expect([gone.status, gone.body.detail]).toEqual([409, expect.stringContaining("worker Ada was deleted")]);
    const unknown = await app.send("POST /api/executions/01a1fd23-4a4c-746f-99ac-8860e2641168/retry", {});
    expect(unknown.status).toBe(404);
  });

  it("stays in the conversation when the message is gone, and replies there", async () => {
    await using app = await openApp();
    const { chat, execution, retry } = await withChat(app);
    await app.db.write([{ sql: "delete from inbound_message", args: [] }]);
    const { status, body } = await retry();
    expect([status, body.session_key, body.message_id]).toEqual([
      201,
      `local:${chat.id}`,
      execution.message_id,
    ]);
    await app.settle();
    const history = await app.call(`GET /api/local/sessions/${chat.id}/messages`);
    expect(history.map(({ role }: { role: string }) => role)).toEqual(["bee", "bee"]);
  });

  it("is refused when its session was deleted before or during the write", async () => {
    await using app = await openApp();
    const { chat, execution, retry } = await withChat(app);
    const write = app.db.write.bind(app.db);
    app.db.write = async (statements, ...more) => {
      if (!statements.some(({ args }) => args.includes("task.created"))) {
        return await write(statements, ...more);
      }
      app.db.write = write;
      await app.call(`DELETE /api/local/sessions/${chat.id}`);
      return await write(statements, ...more);
    };
    const refused = [409, `Cannot retry execution ${execution.id}: its session was deleted`];
    for (let time = 0; time < 2; time++) {
      const { status, body } = await retry();
      expect([status, body.detail]).toEqual(refused);
    }
    expect(await app.call("GET /api/queue")).toEqual([]);
  });

  it("is refused for an active run", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["*:*"]);
    const { status, body } = await app.send(`POST /api/executions/${run.executionId}/retry`, {});
    expect([status, body.detail]).toEqual([409, `Cannot retry execution ${run.executionId}: it is running`]);
  });
});

describe("GET /api/engines (contract 14)", () => {
  it("lists every engine by name, with the default and the usable ones", async () => {
    await using app = await openApp({ config: { engines: { cat: { kind: "command", command: "cat" } } } });
    const engines = await app.call("GET /api/engines");
    expect(engines.map(({ name }: { name: string }) => name)).toEqual(
      engines.map(({ name }: { name: string }) => name).toSorted(),
    );
    expect(engines.find(({ name }: { name: string }) => name === "echo")).toMatchObject({
      default: true,
      usable: true,
    });
    expect(await app.call("GET /api/engines/cat")).toMatchObject({
      kind: "command",
      configured: true,
      default: false,
      usable: true,
      limited_until: null,
    });
    expect((await app.send("GET /api/engines/nothing")).status).toBe(404);
  });
});

describe("GET /api/usage and GET /api/system/series (contract 17)", () => {
  it("sum up usage by each view, and leave unreported usage unknown", async () => {
    const clock = new TestClock(NOW);
    await using app = await openApp({ clock, config: { scheduler: { time_zone: "Pacific/Auckland" } } });
    const department = await app.call("POST /api/departments", { name: "Research" });
    const ada = await app.call("POST /api/workers", { name: "Ada", departments: [department.id] });
    const use = (at: number, worker: string, runs: number, tokens: number | null) => ({
      sql:
        "insert into usage (bucket_start, worker_id, executions, failed, input_tokens) values (?, ?, ?, 1, ?)",
      args: [Math.floor(at / QUARTER_MS), worker, runs, tokens],
    });
    await app.db.write([
      use(NOW, ada.id, 3, null),
      use(NOW - 20 * 3_600_000, ada.id, 2, 70),
      use(NOW, "gone", 9, null),
    ]);
    const unknown = { output_tokens: null, cost_usd: null, minutes: 0 };
    const usage = (query: string) => app.call(`GET /api/usage?${query}`);
    expect(await usage("")).toEqual([
      { key: "gone", name: "", executions: 9, failed: 1, input_tokens: null, ...unknown },
      { key: ada.id, name: "Ada", executions: 5, failed: 2, input_tokens: 70, ...unknown },
    ]);
    expect(await usage("by=department")).toMatchObject([{ name: "Research", executions: 5 }]);
    // 20 hours before 21:00 is the same day in Auckland, but another day in UTC.
    expect(await usage("by=day")).toMatchObject([{ key: "2026-01-05", executions: 14, input_tokens: 70 }]);
    expect(await usage(`since=${NOW}`)).toMatchObject([{ executions: 9 }, { executions: 3 }]);
    const series = await app.call("GET /api/system/series");
    expect(series.length).toBe(25);
    expect(series.at(-1)).toMatchObject({ at: NOW, executions: 12, input_tokens: null });
    expect(series.filter((point: { executions: number }) => point.executions > 0).length).toBe(2);
    for (const query of ["step=1000", "step=900001", "since=0&step=900000"]) {
      expect([query, (await app.send(`GET /api/system/series?${query}`)).status]).toEqual([query, 400]);
    }
    expect((await app.send("GET /api/usage?by=colour")).status).toBe(400);
    expect((await app.send("GET /api/usage?since=0")).status).toBe(400);
  });

  it("a series has the average and longest wait for a start, and null without starts", async () => {
    const clock = new TestClock(NOW);
    await using app = await openApp({ clock });
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada", paused: true });
    const run = (message_id: string) =>
      app.call("POST /api/tasks", { message_id, worker_id, instruction: "say hello", type: "immediate" });
    await run("first");
    await clock.advance(4_000);
    await run("second");
    await clock.advance(2_000);
    await app.call(`PUT /api/workers/${worker_id}`, { paused: false });
    await app.settle();
    const series = await app.call("GET /api/system/series");
    expect(series.at(-1)).toMatchObject({ waited_ms: 4_000, waited_longest_ms: 6_000 });
    expect(series.at(-2)).toMatchObject({ waited_ms: null, waited_longest_ms: null });
  });

  it("a series reads each quarter of an hour once for any number of spans, and sums up each span", async () => {
    await using app = await openApp({ clock: new TestClock(NOW), inMemory: true });
    const quarters = 2_000;
    await app.db.write([{
      sql: `insert into queue_wait_stats (bucket_start, runs, ms, longest_ms)
        with recursive n (i) as (select 0 union all select i + 1 from n where i < ? - 1)
        select ? - i, iif(i % 2 = 0, 1, 3), 4000 + 4 * i, 3000 + i from n`,
      args: [quarters, NOW / QUARTER_MS - 1],
    }]);
    let looks = 0;
    const read = app.db.read.bind(app.db);
    app.db.read = async <T>(sql: string, args: Value[] = []) => {
      const rows = await read<{ at: number }>(sql, args);
      const watched = rows.map((row) => ({
        ...row,
        get at() {
          looks++;
          return row.at;
        },
      }));
      return (sql.includes("from queue_wait_stats") ? watched : rows) as T[];
    };
    const step = 2 * QUARTER_MS;
    const points = await app.call(`GET /api/system/series?since=${NOW - 999 * step}&step=${step}`);
    // Two quarters are before the first span.
    expect([points.length, looks]).toEqual([1_000, quarters - 2]);
    // The last span is empty. The one before has the first two quarters: 8,004 ms of four runs.
    expect(points.slice(-3)).toMatchObject([
      { waited_ms: 2_005, waited_longest_ms: 3_003 },
      { waited_ms: 2_001, waited_longest_ms: 3_001 },
      { waited_ms: null, waited_longest_ms: null },
    ]);
  });

  it("a run sees the usage of its conversation, even if a thousand others used more (contract 2.8)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["read:executions"]);
    const now = Date.now();
    const execution =
      `insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, engine,
      instruction, status, attempt, run_id, created_at, started_at, completed_at)`;
    const rest = "'w', 'Ada', 't', 'm', ?, 'echo', 'x', 'completed', 1";
    await app.db.write([
      {
        sql: `${execution}
          with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000)
          select 'other-' || i, ${rest.replace("?", "'other-' || (i % 1000)")}, 'r-' || i, ?1, ?1, ?1 from n`,
        args: [now],
      },
      { sql: `${execution} values ('own', ${rest}, 'r', ?2, ?2, ?2)`, args: [run.sessionKey, now] },
    ]);
    const usage = async (headers = {}): Promise<{ key: string }[]> =>
      await app.call("GET /api/usage?by=conversation", undefined, headers);
    const all = await usage();
    expect([all.length, all.some(({ key }) => key === run.sessionKey)]).toEqual([1_000, false]);
    expect(await usage(run.headers)).toMatchObject([{ key: run.sessionKey, executions: 1 }]);
  });

  it("sum up by engine and conversation from executions", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const chat = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "hello" });
    await app.settle();
    expect(await app.call("GET /api/usage?by=engine")).toMatchObject([{
      key: "echo",
      executions: 1,
      failed: 0,
    }]);
    expect(await app.call("GET /api/usage?by=conversation")).toMatchObject([{
      key: `local:${chat.id}`,
      executions: 1,
    }]);
  });
});
