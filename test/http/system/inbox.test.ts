import { describe, expect, it } from "vitest";
import { createId } from "../../../src/base/id.ts";
import { INBOX_TITLE_MAX } from "../../../src/domain/system/inbox.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { startRun } from "../../harness/service/run.ts";
import { ctl } from "../../harness/terminal.ts";

const BREAKS = {
  kind: "command",
  command: "sh",
  args: ["-c", "cat >/dev/null; echo no such report >&2; exit 3"],
};
const HOUR_MS = 3_600_000;

it("GET /api/inbox lists items for people, newest first, without repeated runs (contract 17)", async () => {
  const clock = new TestClock(Date.parse("2026-01-05T08:00:00Z"));
  await using app = await openApp({ clock, config: { engines: { breaks: BREAKS } } });
  const inbox = (query = "") => app.call(`GET /api/inbox${query}`);
  expect(await inbox()).toEqual([]);
  const paused = await app.call("POST /api/workers", { name: "Grace", paused: true });
  await clock.advance(1_000);
  const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
  const task = {
    message_id: "script",
    worker_id: eve.id,
    instruction: "fetch the report",
    type: "immediate",
  };
  await app.call("POST /api/tasks", task);
  await app.settle();
  await clock.advance(1_000);
  const limit = { engine: "claude", until: clock.now() + HOUR_MS };
  await app.db.write([{
    sql: "insert into rate_limit (engine, until, strikes, since, announced) values (?, ?, 1, 0, 1)",
    args: [limit.engine, limit.until],
  }]);
  const [execution] = await app.call("GET /api/executions");
  expect(await inbox()).toMatchObject([
    { kind: "engine_limited", title: "claude", detail: expect.stringContaining("2026-01-05T09:00") },
    {
      kind: "run_failed",
      title: "fetch the report",
      detail: expect.stringMatching(/^exit_code: .*no such report/),
      execution_id: execution.id,
      worker_name: "Eve",
    },
    { kind: "worker_paused", worker_id: paused.id },
  ]);
  expect((await inbox(`?since=${clock.now() + 1}`)).map(({ kind }: { kind: string }) => kind)).not.toContain(
    "run_failed",
  );
  const message = { id: execution.task_id, at: clock.now() };
  await app.db.write([{
    sql:
      `insert into execution (id, run_id, worker_id, worker_name, task_id, message_id, session_key, session_id, engine,
        instruction, status, attempt, created_at)
      select '01ffffff-4a4c-746f-99ac-8860e2641168', 'later', worker_id, worker_name, ?, message_id, session_key, session_id,
        engine, instruction, 'pending', 2, ?
      from execution`,
    args: [message.id, message.at],
  }]);
  expect((await inbox()).map(({ kind }: { kind: string }) => kind)).toEqual([
    "engine_limited",
    "worker_paused",
  ]);
});

it("GET /api/inbox has budgets that block work and paused schedules, each with its id (contract 17)", async () => {
  await using app = await openApp();
  const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
  const task = { worker_id, instruction: "say hello" };
  const budget = await app.call("POST /api/budgets", {
    name: "Tight",
    unit: "runs",
    limit: 0,
    period: "24h",
  });
  const kinds = async () =>
    (await app.call("GET /api/inbox")).map((item: { kind: string }) => item.kind).sort();
  expect(await kinds()).toEqual([]);
  await app.call("POST /api/tasks", { ...task, message_id: "a", type: "immediate" });
  await app.settle();
  const plan = { ...task, message_id: "b", type: "scheduled", cron: "0 5 1 1 *", name: "Yearly" };
  const schedule = await app.call("POST /api/tasks", plan);
  expect(await kinds()).toEqual(["budget_holds"]);
  await app.call(`PUT /api/tasks/${schedule.id}`, { paused: true });
  expect(await app.call("GET /api/inbox")).toEqual(expect.arrayContaining([
    expect.objectContaining({
      kind: "budget_holds",
      title: "Tight",
      detail: "global",
      budget_id: budget.id,
      task_id: "",
    }),
    expect.objectContaining({
      kind: "schedule_paused",
      title: "Yearly",
      worker_name: "Ada",
      task_id: schedule.id,
      budget_id: "",
    }),
  ]));
  await app.call(`POST /api/budgets/${budget.id}/lift`, { for_ms: 3_600_000 });
  await app.call(`PUT /api/tasks/${schedule.id}`, { paused: false });
  await app.settle();
  expect(await kinds()).toEqual([]);
});

it("GET /api/inbox marks a text that it cuts, and no other", async () => {
  await using app = await openApp();
  const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
  const plan = { worker_id, message_id: "m", type: "scheduled", cron: "0 5 1 1 *", paused: true };
  for (const length of [INBOX_TITLE_MAX, INBOX_TITLE_MAX + 1]) {
    await app.call("POST /api/tasks", { ...plan, instruction: "x".repeat(length) });
  }
  const items = await app.call("GET /api/inbox");
  expect(items.map(({ title }: { title: string }) => title).sort()).toEqual([
    "x".repeat(INBOX_TITLE_MAX),
    `${"x".repeat(INBOX_TITLE_MAX - 1)}…`,
  ]);
});

it("GET /api/inbox shows a retried run only by its latest run, and others unchanged (contract 17)", async () => {
  await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
  const { id: worker_id } = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
  for (const instruction of ["fetch the report", "fetch the figures"]) {
    await app.call("POST /api/tasks", { message_id: "script", worker_id, instruction, type: "immediate" });
  }
  await app.settle();
  const failed = await app.call("GET /api/executions") as { id: string; instruction: string }[];
  const shown = async () =>
    (await app.call("GET /api/inbox")).map((item: { execution_id: string }) => item.execution_id).sort();
  expect(await shown()).toEqual(failed.map(({ id }) => id).sort());
  const report = failed.find(({ instruction }) => instruction === "fetch the report");
  await app.call(`POST /api/executions/${report?.id}/retry`, {});
  await app.settle();
  const [latest] = await app.call("GET /api/executions");
  const other = failed.find(({ id }) => id !== report?.id);
  expect(await shown()).toEqual([latest.id, other?.id].sort());
});

it("GET /api/inbox omits a failed run whose repeat still waits, until that repeat is cancelled (contract 17)", async () => {
  await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
  const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
  const task = {
    message_id: "script",
    worker_id: eve.id,
    instruction: "fetch the report",
    type: "immediate",
  };
  await app.call("POST /api/tasks", task);
  await app.settle();
  await app.call(`PUT /api/workers/${eve.id}`, { paused: true });
  const kinds = async () =>
    (await app.call("GET /api/inbox")).map(({ kind }: { kind: string }) => kind).sort();
  const [{ id }] = await app.call("GET /api/executions");
  expect(await kinds()).toEqual(["run_failed", "worker_paused"]);
  const repeat = await app.call(`POST /api/executions/${id}/retry`, {});
  expect(await kinds()).toEqual(["worker_paused"]);
  await app.call(`POST /api/tasks/${repeat.id}/cancel`, {});
  expect(await kinds()).toEqual(["run_failed", "worker_paused"]);
});

it("GET /api/inbox refuses every run, whatever its scopes (contract 9)", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const run = await startRun(app, ["*:*"]);
  expect((await app.send("GET /api/inbox", undefined, run.headers)).status).toBe(403);
});

describe("POST /api/inbox/:kind/:id/dismiss (contract 17)", () => {
  const openBroken = async () => {
    const clock = new TestClock(Date.parse("2026-01-05T08:00:00Z"));
    const app = await openApp({ clock, config: { engines: { breaks: BREAKS } } });
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    const task = { message_id: "script", worker_id, instruction: "fetch", type: "immediate" };
    await app.call("POST /api/tasks", task);
    await app.settle();
    const list = async () =>
      (await app.call("GET /api/inbox")).map(({ kind, id }: { kind: string; id: string }) => [kind, id]);
    return { app, clock, worker_id, list };
  };

  it("hides a failure for good, with an event that names it", async () => {
    const { app, list, worker_id } = await openBroken();
    await using _app = app;
    const [[, id]] = await list();
    expect(await list()).toEqual([["run_failed", id]]);
    const dismiss = `POST /api/inbox/run_failed/${id}/dismiss`;
    expect(await app.call(dismiss, {})).toEqual({ kind: "run_failed", id, until: null });
    expect(await list()).toEqual([]);
    const [event] = await app.call("GET /api/events?kind=inbox.dismissed", undefined, {
      accept: "application/json",
    });
    expect(event).toMatchObject({
      ...{ worker_id, execution_id: id, message_id: "script", actor: "user:admin" },
      data: { item: "run_failed", id, until: null },
    });
    expect((await app.send("POST /api/inbox/run_failed/unknown/dismiss", {})).status).toBe(404);
    expect((await app.send(`POST /api/inbox/undelivered/${id}/dismiss`, {})).status).toBe(404);
  });

  it("hides a failed message and an undelivered reply by their own ids", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/local/sessions", { name: "x" });
    const at = Date.now();
    const ids = { in: createId(), out: createId(), other: createId() };
    await app.db.write([
      {
        sql: `insert into inbound_message
          (id, session_key, platform, platform_message_id, content, status, error, due_at, received_at)
          values (?, ?, 'local', ?, 'hello', 'failed', 'no route', ?, ?)`,
        args: [ids.in, `local:${id}`, ids.in, at, at],
      },
      ...[ids.out, ids.other].map((out) => ({
        sql: `insert into outbound_message
          (id, session_key, platform, message_id, content, status, error, source_type, source_id, created_at)
          values (?, ?, 'local', ?, 'reply', 'failed', 'gone', 'bee', '', ?)`,
        args: [out, `local:${id}`, ids.in, at],
      })),
    ]);
    await app.call(`POST /api/inbox/message_failed/${ids.in}/dismiss`, {});
    await app.call(`POST /api/inbox/undelivered/${ids.out}/dismiss`, {});
    expect(await app.call("GET /api/inbox")).toMatchObject([{ kind: "undelivered", id: ids.other }]);
  });

  it("snoozes any item until a time, and refuses to dismiss a state for good", async () => {
    const { app, clock, list, worker_id } = await openBroken();
    await using _app = app;
    await app.call(`PUT /api/workers/${worker_id}`, { paused: true });
    const [[, id]] = (await list()).filter(([kind]: string[]) => kind === "run_failed");
    const refused = await app.send(`POST /api/inbox/worker_paused/${worker_id}/dismiss`, {});
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining("`until`")]);
    const until = clock.now() + HOUR_MS;
    await app.call(`POST /api/inbox/worker_paused/${worker_id}/dismiss`, { until });
    await app.call(`POST /api/inbox/run_failed/${id}/dismiss`, { until });
    expect(await list()).toEqual([]);
    await clock.advance(HOUR_MS);
    expect((await list()).sort()).toEqual([["run_failed", id], ["worker_paused", worker_id]]);
    const past = await app.send(`POST /api/inbox/run_failed/${id}/dismiss`, { until: clock.now() });
    expect([past.status, past.body.errors]).toEqual([400, [{
      path: "until",
      message: "must be in the future",
    }]]);
  });

  it("svc ctl inbox dismiss takes an id, its ending, or a kind", async () => {
    const { app, worker_id, list } = await openBroken();
    await using _app = app;
    const since = "--since 2026-01-01";
    const [[, id]] = await list();
    expect((await ctl(app, `inbox ${since} -q`)).out).toBe(`${id}\n`);
    expect((await ctl(app, "inbox dismiss")).code).toBe(2);
    expect((await ctl(app, "inbox dismiss 123456")).code).toBe(3);
    expect((await ctl(app, `inbox dismiss …${id.slice(-6)} ${since}`)).out).toContain(`id\t${id}\n`);
    expect(await list()).toEqual([]);
    await app.call("POST /api/tasks", { message_id: "b", worker_id, instruction: "two", type: "immediate" });
    await app.settle();
    expect((await ctl(app, `inbox dismiss --kind run_failed ${since}`)).code).toBe(0);
    expect((await ctl(app, `inbox list ${since} -q`)).out).toBe("");
  });
});
