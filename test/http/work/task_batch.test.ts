import { describe, expect, it } from "vitest";
import { TASK_BATCH_MAX, TASK_BATCH_MAX_BYTES } from "../../../src/domain/work/task_batch.ts";
import { RUN_TASKS_MAX } from "../../../src/api/call/run_limit.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createToken } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";
import { countProcessorMs } from "../../harness/service/processor_time.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const NOW = Date.parse("2026-01-05T08:00:00Z");
const ROUTE = "POST /api/tasks/batch";

async function withWorker(app: App) {
  const worker = await app.call("POST /api/workers", { name: "Ada", paused: true });
  const base = { message_id: "script", worker_id: worker.id, instruction: "do it", type: "immediate" };
  const count = async () =>
    (await app.db.first<{ total: number }>("select count(*) as total from task"))?.total ?? 0;
  return { worker, base, count };
}

describe(`${ROUTE} (contract 3, Task)`, () => {
  it("creates each task as POST /api/tasks does, in order", async () => {
    await using app = await openApp({ clock: new TestClock(NOW) });
    const { base } = await withWorker(app);
    const session = await app.call("POST /api/local/sessions");
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: "hi",
    });
    const tasks = [
      base,
      { ...base, message_id, instruction: 'ünïcode \u{1F41D} "quoted"\n' },
      { ...base, type: "countdown", scheduled_at: NOW + 60_000, name: "Later", paused: true },
      {
        ...base,
        type: "scheduled",
        cron: "0 9 * * 1",
        time_zone: "Europe/Berlin",
        max_runs: 3,
        until: NOW * 2,
      },
      { ...base, type: "scheduled", cron: "61 * * * *" },
      { ...base, verify: { command: ["true"] } },
      {
        ...base,
        type: "scheduled",
        cron: "0 9 * * 1",
        gate: { command: ["test", "-e", "x"] },
        overlap: "queue",
      },
    ];
    const made = await app.send(ROUTE, { tasks });
    expect(made.status).toBe(201);
    const alone: { id: string }[] = [];
    for (const task of tasks) {
      const { id } = await app.call("POST /api/tasks", task);
      alone.push(await app.call(`GET /api/tasks/${id}`));
    }
    const shown = [];
    for (const { id } of made.body.tasks) shown.push(await app.call(`GET /api/tasks/${id}`));
    expect(made.body.tasks).toEqual(shown.map(({ id, status, reason }) => ({ id, status, reason })));
    expect(made.body.tasks[4]).toMatchObject({ status: "cancelled", reason: "minute: 61 is not 0-59" });
    const ids = made.body.tasks.map(({ id }: { id: string }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(shown.map((task, at) => ({ ...task, id: alone[at]?.id }))).toEqual(alone);
    const rows = await app.db.read<{ id: string }>(
      "select id, due_at, parent_task_id, depth from task order by id",
    );
    const half = rows.length / 2;
    expect(rows.slice(0, half).map((row) => ({ ...row, id: "" }))).toEqual(
      rows.slice(half).map((row) => ({ ...row, id: "" })),
    );
    const events = await app.db.read<{ task_id: string }>(
      "select task_id, actor, data, session_key, worker_id, message_id, address from journal where kind = 'task.created' order by seq",
    );
    expect(events.slice(0, half).map(({ task_id }) => task_id)).toEqual(ids);
    expect(events.slice(0, half).map((event) => ({ ...event, task_id: "" }))).toEqual(
      events.slice(half).map((event) => ({ ...event, task_id: "" })),
    );
  });

  it("runs each created task once and replies in the conversations", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
    const task = (instruction: string) => ({
      message_id: "script",
      worker_id: worker.id,
      instruction,
      type: "immediate",
    });
    const { tasks } = await app.call(ROUTE, { tasks: ["one", "two", "three"].map(task) });
    await app.settle();
    const executions = await app.call(`GET /api/executions?worker_id=${worker.id}`);
    expect(
      executions.map(({ result, task_id }: { result: string; task_id: string }) => [task_id, result])
        .reverse(),
    )
      .toEqual(["one", "two", "three"].map((words, at) => [tasks[at].id, words]));
  });

  it("refuses all if one is invalid, and names its index and field", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { base, count } = await withWorker(app);
    const run = await startRun(app, ["write:tasks"]);
    const other = await startRun(app, ["write:tasks"], "Other");
    const plain = await createToken(app, "ci", ["write:tasks"]);
    const before = await count();
    const own = { ...base, message_id: run.messageId };
    const wrong: [task: object, status: number, path: string, headers?: Record<string, string>][] = [
      [{ ...base, worker_id: UNKNOWN }, 400, "tasks.1.worker_id"],
      [{ ...base, worker_id: "x" }, 400, "tasks.1.worker_id"],
      [{ ...base, instruction: "" }, 400, "tasks.1.instruction"],
      [{ ...base, instruction: "x".repeat(256 * 1024 + 1) }, 400, "tasks.1.instruction"],
      [{ ...base, colour: "red" }, 400, "tasks.1.colour"],
      [{ ...base, type: "countdown", scheduled_at: Date.now() + 100 }, 400, "tasks.1.scheduled_at"],
      [{ ...base, cron: "* * * * *" }, 400, "tasks.1.cron"],
      [{ ...base, type: "scheduled", cron: "* * * * *", time_zone: "Mars" }, 400, "tasks.1.time_zone"],
      [{ ...base, verify: { command: ["true"] } }, 403, "tasks.1.verify", plain.headers],
      [{ ...own, message_id: other.messageId }, 404, "tasks.1.message_id", run.headers],
      [
        { ...own, type: "scheduled", cron: "0 9 * * 1", deliver_to: "local:x" },
        403,
        "tasks.1.deliver_to",
        run.headers,
      ],
    ];
    for (const [task, status, path, headers = {}] of wrong) {
      const good = "authorization" in headers && headers !== plain.headers ? own : base;
      const { status: got, body } = await app.send(ROUTE, { tasks: [good, task, good] }, headers);
      expect([path, got, body.errors?.map((one: { path: string }) => one.path)]).toEqual([path, status, [
        path,
      ]]);
      expect(body.detail).toMatch(/^tasks\.1[.:]/);
    }
    expect((await app.send(ROUTE, { tasks: [{ ...base, colour: "red" }] })).body.detail)
      .toMatch(/^tasks\.0\.colour: unknown; known: message_id, worker_id/);
    expect(await count()).toBe(before);
    expect((await app.send(ROUTE, { tasks: [own, own] }, run.headers)).status).toBe(201);
  });

  it("accepts 1 to 500 tasks in 8 MiB, and refuses more without checking each", async () => {
    await using app = await openApp({ inMemory: true });
    const { base, count } = await withWorker(app);
    const many = (length: number) => ({ tasks: Array.from({ length }, () => base) });
    const cases = [[0, 400], [1, 201], [TASK_BATCH_MAX, 201], [TASK_BATCH_MAX + 1, 400]] as const;
    for (const [length, status] of cases) {
      expect([length, (await app.send(ROUTE, many(length))).status]).toEqual([length, status]);
    }
    expect(await count()).toBe(1 + TASK_BATCH_MAX);
    const large = { ...base, instruction: "x".repeat(250_000) };
    const fits = { tasks: Array.from({ length: 32 }, () => large) };
    expect((await app.send(ROUTE, fits)).status).toBe(201);
    expect((await app.send(ROUTE, { tasks: [...fits.tasks, large, large] })).status).toBe(413);
    const junk = `{"tasks":[${"0,".repeat(TASK_BATCH_MAX_BYTES / 2 - 20)}0]}`;
    const processorMs = countProcessorMs();
    const refused = await app.send(ROUTE, junk);
    expect([refused.status, refused.body.detail]).toEqual([400, "tasks: must be at most 500 entries"]);
    expect(processorMs()).toBeLessThan(2_000);
  });

  it("creates tasks once per Idempotency-Key, also with simultaneous requests [DUR-2]", async () => {
    await using app = await openApp();
    const { base, count } = await withWorker(app);
    const send = (tasks: object[]) => app.send(ROUTE, { tasks }, { "idempotency-key": "b" });
    const [first, second] = await Promise.all([send([base, base]), send([base, base])]);
    expect(second.body).toEqual(first.body);
    expect((await send([base, base])).body).toEqual(first.body);
    expect((await send([base])).status).toBe(409);
    expect(await count()).toBe(2);
  });

  it("counts each task for the limit of a run [SCP-7]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { base, count } = await withWorker(app);
    const run = await startRun(app, ["write:tasks"]);
    const before = await count();
    const send = (length: number) => {
      const tasks = Array.from({ length }, () => ({ ...base, message_id: run.messageId }));
      return app.send(ROUTE, { tasks }, run.headers);
    };
    expect((await send(RUN_TASKS_MAX + 1)).status).toBe(409);
    expect((await send(RUN_TASKS_MAX)).status).toBe(201);
    expect((await send(1)).status).toBe(409);
    expect(await count()).toBe(before + RUN_TASKS_MAX);
  });

  it("writes nothing if a worker is deleted between check and write", async () => {
    await using app = await openApp();
    const { base, count } = await withWorker(app);
    const gone = await app.call("POST /api/workers", { name: "Gone", paused: true });
    const { db } = app;
    const write = db.write.bind(db);
    db.write = async (statements) => {
      db.write = write;
      await app.call(`DELETE /api/workers/${gone.id}`);
      return await write(statements);
    };
    const reply = await app.send(ROUTE, { tasks: [base, { ...base, worker_id: gone.id }] });
    expect([reply.status, reply.body.errors[0].path]).toEqual([400, "tasks.1.worker_id"]);
    expect(await count()).toBe(0);
  });
});
