import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const NOW = Date.parse("2026-01-05T08:00:00Z");

async function withWorker(app: App) {
  const worker = await app.call("POST /api/workers", { name: "Ada", paused: true });
  const base = { message_id: "script", worker_id: worker.id, instruction: "do it" };
  const post = (body: object) => app.send("POST /api/tasks", { ...base, ...body });
  return { worker, base, post };
}

describe("POST /api/tasks (interface 4.2, contract 3)", () => {
  it("an immediate task is pending; an unknown message id creates a session", async () => {
    const clock = new TestClock(NOW);
    await using app = await openApp({ clock });
    const { worker, post } = await withWorker(app);
    const { status, body } = await post({ type: "immediate" });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      message_id: "script",
      worker_id: worker.id,
      session_key: "cli:script",
      instruction: "do it",
      type: "immediate",
      scheduled_at: null,
      cron: "",
      time_zone: "",
      name: "",
      paused: false,
      gate: null,
      verify: null,
      overlap: "skip",
      pause_after_failures: 0,
      deliver_to: "",
      until: null,
      max_runs: null,
      after: [],
      after_when: "success",
      status: "pending",
      reason: "",
      held_by: null,
      launch: null,
      next_run_at: null,
      run_count: 0,
      attempt: 0,
      execution_id: null,
      run_no: 1,
      last_status: "",
      last_run_at: null,
      last_error: "",
      failures_in_row: 0,
      runs_ended: 0,
      created_by: "user:admin",
      created_at: NOW,
      updated_at: NOW,
    });
    expect(await app.call(`GET /api/tasks/${body.id}`)).toEqual(body);
    expect(Object.keys(await app.call(`GET /api/tasks/${body.id}`))).toEqual(Object.keys(body));
  });

  it("a countdown needs a time at least 5 seconds ahead: below, at and above the limit (interface 8) [DSP-7]", async () => {
    const clock = new TestClock(NOW);
    await using app = await openApp({ clock });
    const { post } = await withWorker(app);
    expect((await post({ type: "countdown", scheduled_at: NOW + 4_999 })).status).toBe(400);
    expect((await post({ type: "countdown", scheduled_at: NOW + 5_000 })).body).toMatchObject({
      status: "scheduled",
      scheduled_at: NOW + 5_000,
      next_run_at: NOW + 5_000,
    });
    expect((await post({ type: "countdown", scheduled_at: NOW + 5_001 })).status).toBe(201);
    for (const scheduled_at of [NOW, 0, -1, 1.5, "soon", null, 9e15]) {
      expect((await post({ type: "countdown", scheduled_at })).status, String(scheduled_at)).toBe(400);
    }
  });

  it("a schedule has a next time; one that never fires is created as cancelled with a reason (interface 3, interface 7.2)", async () => {
    const clock = new TestClock(NOW);
    await using app = await openApp({ clock, config: { scheduler: { time_zone: "Europe/Berlin" } } });
    const { post } = await withWorker(app);
    expect((await post({ type: "scheduled", cron: "0 10 * * *" })).body).toMatchObject({
      status: "scheduled",
      next_run_at: Date.parse("2026-01-05T09:00:00Z"),
    });
    expect((await post({ type: "scheduled", cron: "0 10 * * *", time_zone: "America/New_York" })).body)
      .toMatchObject({
        time_zone: "America/New_York",
        next_run_at: Date.parse("2026-01-05T15:00:00Z"),
      });
    const cases = [
      ["61 * * * *", /minute/],
      ["", /empty/],
      ["@daily", /nicknames/],
      ["0 0 31 2 *", /never/],
    ] as const;
    for (const [cron, words] of cases) {
      const { status, body } = await post({ type: "scheduled", cron });
      expect(status, cron).toBe(201);
      expect(body, cron).toMatchObject({
        status: "cancelled",
        cron,
        next_run_at: null,
        reason: expect.stringMatching(words),
      });
    }
    expect((await post({ type: "scheduled", cron: "0 10 * * *", time_zone: "Mars/Base" })).status).toBe(400);
    expect((await post({ type: "scheduled", cron: "x".repeat(1_001) })).status).toBe(400);
  });

  it("refuses missing, extra and contradictory fields, and creates nothing", async () => {
    await using app = await openApp();
    const { base, worker } = await withWorker(app);
    const at = Date.now() + 60_000;
    const good = { immediate: {}, countdown: { scheduled_at: at }, scheduled: { cron: "* * * * *" } };
    const extra = { scheduled_at: at, cron: "* * * * *", time_zone: "UTC" };
    const refused: object[] = [
      {},
      { ...base },
      { ...base, type: "later" },
      { ...base, type: "countdown" },
      { ...base, type: "scheduled" },
      { ...base, type: "immediate", ...extra },
      { ...base, type: "immediate", surprise: 1 },
      { ...base, type: "immediate", message_id: "" },
      { ...base, type: "immediate", message_id: "x".repeat(241) },
      { ...base, type: "immediate", message_id: "é".repeat(241) },
      { ...base, type: "immediate", message_id: "a\u0007b" },
      { ...base, type: "immediate", instruction: "" },
      { ...base, type: "immediate", instruction: " \n" },
      { ...base, type: "immediate", instruction: "x".repeat(262_145) },
      { ...base, type: "immediate", worker_id: UNKNOWN },
      { ...base, type: "immediate", worker_id: "Ada" },
      { ...base, type: "immediate", worker_id: "" },
    ];
    for (const [type, needs] of Object.entries(good)) {
      for (const [name, value] of Object.entries(extra)) {
        const fits = type === "countdown"
          ? name === "scheduled_at"
          : type === "scheduled" && name !== "scheduled_at";
        if (!fits) refused.push({ ...base, type, ...needs, [name]: value });
      }
      for (const missing of ["message_id", "worker_id", "instruction"]) {
        refused.push({ ...base, type, ...needs, [missing]: undefined });
      }
    }
    for (const body of refused) {
      const reply = await app.send("POST /api/tasks", body);
      expect(reply.status, JSON.stringify(body).slice(0, 200)).toBe(400);
      expect(reply.body.code).toBe("invalid_request");
    }
    expect(await app.call(`GET /api/tasks?worker_id=${worker.id}`)).toEqual([]);
    // The longest message id: filters must accept its session key (contract 8.3).
    const message_id = "\u{1f41d}".repeat(240);
    const { session_key } = await app.call("POST /api/tasks", { ...base, type: "immediate", message_id });
    expect(await app.call(`GET /api/tasks?session_key=${encodeURIComponent(session_key)}`)).toHaveLength(1);
  });

  it("joins the conversation of a stored message, and replies there", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    const { message_id } = await app.call(`POST /api/local/sessions/${id}/messages`, { content: "first" });
    await app.settle();
    const task = await app.call("POST /api/tasks", {
      message_id,
      worker_id: worker.id,
      instruction: "second",
      type: "immediate",
    });
    expect(task.session_key).toBe(`local:${id}`);
    await app.settle();
    expect(
      (await app.call(`GET /api/local/sessions/${id}/messages`)).map((one: { content: string }) =>
        one.content
      ),
    ).toEqual(["first", "first", "second"]);
    const script = await app.call("POST /api/tasks", {
      message_id: "nightly",
      worker_id: worker.id,
      instruction: "third",
      type: "immediate",
    });
    await app.settle();
    expect(await app.call(`GET /api/executions?session_id=${script.session_key}`)).toMatchObject([{
      result: "third",
      status: "completed",
    }]);
    expect(await app.db.first("select count(*) as n from outbound_message")).toMatchObject({ n: 2 });
  });

  it("the filters find a message id with a comma, and several ids", async () => {
    await using app = await openApp();
    const { base, worker } = await withWorker(app);
    await app.call(`PUT /api/workers/${worker.id}`, { paused: false });
    for (const message_id of ["report 1,2", "report 1", "2"]) {
      await app.call("POST /api/tasks", { ...base, message_id, type: "immediate" });
    }
    await app.settle();
    const found = async (path: string): Promise<string[]> =>
      (await app.call(`GET ${path}`)).map((one: { message_id: string }) => one.message_id);
    expect(await found("/api/tasks?message_id=report%201%2C2")).toEqual(["2", "report 1", "report 1,2"]);
    expect(await found("/api/tasks?message_id=report%201")).toEqual(["report 1"]);
    expect(await found("/api/tasks?message_id=2&message_id=x")).toEqual(["2"]);
    expect(await found("/api/executions?session_id=cli%3Areport%201%2C2")).toContain("report 1,2");
  });
});

describe("GET /api/tasks and its transitions (interface 4.2, contract 3)", () => {
  it("requires one key, and refuses exclusive ones", async () => {
    await using app = await openApp();
    const { worker, post } = await withWorker(app);
    const made = (await post({ type: "immediate" })).body;
    expect((await app.send("GET /api/tasks")).status).toBe(400);
    expect((await app.send("GET /api/tasks?status=pending")).status).toBe(400);
    expect((await app.send("GET /api/tasks?session_key=cli:script&message_id=script")).status).toBe(400);
    const queries = [
      `worker_id=${worker.id}`,
      "session_key=cli:script",
      "message_id=script",
      `worker_id=${worker.id}&session_key=cli:script`,
    ];
    for (const query of queries) {
      expect(await app.call(`GET /api/tasks?${query}`), query).toEqual([made]);
    }
    for (const query of ["worker_id=x", `worker_id=${UNKNOWN}`, "session_key=none", "message_id=none"]) {
      expect(await app.call(`GET /api/tasks?${query}`), query).toEqual([]);
    }
    const refused = [
      "worker_id=",
      "session_key=",
      "worker_id=x&status=done",
      "worker_id=x&type=later",
      "worker_id=x,",
    ];
    for (const query of refused) {
      expect((await app.send(`GET /api/tasks?${query}`)).status, query).toBe(400);
    }
    expect(await app.call(`GET /api/tasks?worker_id=${worker.id}&status=pending,running&type=immediate`))
      .toEqual([made]);
    expect(await app.call(`GET /api/tasks?worker_id=${worker.id}&status=running&status=completed`)).toEqual(
      [],
    );
  });

  it("cancels a pending or scheduled task once", async () => {
    await using app = await openApp();
    const { post } = await withWorker(app);
    const countdown = { type: "countdown", scheduled_at: Date.now() + 60_000 };
    const bodies = [{ type: "immediate" }, { type: "scheduled", cron: "* * * * *" }, countdown];
    for (const body of bodies) {
      const { id } = (await post(body)).body;
      expect(await app.call(`POST /api/tasks/${id}/cancel`)).toMatchObject({
        status: "cancelled",
        reason: "cancelled by user:admin",
        next_run_at: null,
      });
      const again = await app.send(`POST /api/tasks/${id}/cancel`);
      expect(again.body).toMatchObject({
        code: "conflict",
        detail: expect.stringContaining("it is cancelled"),
      });
    }
    expect((await app.send(`POST /api/tasks/${UNKNOWN}/cancel`)).status).toBe(404);
    expect((await app.send("POST /api/tasks/x/cancel")).status).toBe(404);
    expect((await app.send(`POST /api/tasks/${UNKNOWN}/cancel`, { force: true })).status).toBe(400);
  });

  it("does not cancel a running task, and ends a running schedule after its run", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const base = { message_id: "s", worker_id: worker.id, instruction: "sleep 0.3" };
    const once = await app.call("POST /api/tasks", { ...base, type: "immediate" });
    await app.until("execution.started");
    expect((await app.send(`POST /api/tasks/${once.id}/cancel`)).status).toBe(409);
    await app.settle();
    expect((await app.call(`GET /api/tasks/${once.id}`)).status).toBe("completed");

    const cron = await app.call("POST /api/tasks", { ...base, type: "scheduled", cron: "0 0 1 1 *" });
    await app.call(`POST /api/tasks/${cron.id}/run`);
    await app.until("execution.started", 2);
    expect((await app.call(`POST /api/tasks/${cron.id}/cancel`)).status).toBe("cancelled");
    await app.settle();
    expect(await app.call(`GET /api/tasks/${cron.id}`)).toMatchObject({
      status: "cancelled",
      next_run_at: null,
    });
    expect((await app.call("GET /api/executions"))[0]).toMatchObject({
      status: "completed",
      task_id: cron.id,
    });
  });

  it("runs a schedule now without changing it, and a countdown instead of later", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const base = { message_id: "s", worker_id: worker.id, instruction: "x" };
    const cron = await app.call("POST /api/tasks", { ...base, type: "scheduled", cron: "0 0 1 1 *" });
    await app.call(`POST /api/tasks/${cron.id}/run`);
    await app.settle();
    expect(await app.call(`GET /api/tasks/${cron.id}`)).toMatchObject({
      status: "scheduled",
      next_run_at: cron.next_run_at,
      run_count: 1,
    });
    const later = await app.call("POST /api/tasks", {
      ...base,
      type: "countdown",
      scheduled_at: Date.now() + 60_000,
    });
    await app.call(`POST /api/tasks/${later.id}/run`);
    await app.settle();
    expect(await app.call(`GET /api/tasks/${later.id}`)).toMatchObject({
      status: "completed",
      next_run_at: null,
      run_count: 1,
    });
    expect((await app.send(`POST /api/tasks/${later.id}/run`)).status).toBe(409);
    expect((await app.send(`POST /api/tasks/${UNKNOWN}/run`)).status).toBe(404);
  });

  it("waits until the task ends, or until the timeout", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const base = { message_id: "s", worker_id: worker.id };
    const quick = await app.call("POST /api/tasks", { ...base, instruction: "sleep 0.2", type: "immediate" });
    expect((await app.call(`GET /api/tasks/${quick.id}/wait?timeout_ms=10000`)).status).toBe("completed");
    expect((await app.call(`GET /api/tasks/${quick.id}/wait?timeout_ms=0`)).status).toBe("completed");
    const slow = await app.call("POST /api/tasks", { ...base, instruction: "sleep 30", type: "immediate" });
    const started = performance.now();
    expect((await app.call(`GET /api/tasks/${slow.id}/wait?timeout_ms=200`)).status).toMatch(
      /pending|running/,
    );
    expect(performance.now() - started).toBeLessThan(10_000);
    const cron = await app.call("POST /api/tasks", {
      ...base,
      instruction: "ok",
      type: "scheduled",
      cron: "0 0 1 1 *",
    });
    await app.call(
      `POST /api/executions/${(await app.call("GET /api/executions?status=running"))[0].id}/cancel`,
    );
    const waiting = app.call(`GET /api/tasks/${cron.id}/wait?timeout_ms=10000`);
    await app.call(`POST /api/tasks/${cron.id}/run`);
    expect(await waiting).toMatchObject({ status: "scheduled", run_count: 1 });
    expect((await app.send(`GET /api/tasks/${UNKNOWN}/wait`)).status).toBe(404);
    for (const bad of ["-1", "600001", "x", ""]) {
      expect((await app.send(`GET /api/tasks/${cron.id}/wait?timeout_ms=${bad}`)).status).toBe(400);
    }
  });
});

describe("/api/contexts (interface 4.2, contract 3)", () => {
  it("clears a conversation: cancels its tasks, ends its runs, and stops routing its messages [DSP-12]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    const key = `local:${id}`;
    const { message_id } = await app.call(`POST /api/local/sessions/${id}/messages`, { content: "sleep 60" });
    await app.until("execution.started");
    const base = { message_id, worker_id: worker.id, instruction: "x" };
    await app.call("POST /api/tasks", { ...base, type: "immediate" });
    await app.call("POST /api/tasks", { ...base, type: "scheduled", cron: "0 0 1 1 *" });
    await app.call("POST /api/tasks", { ...base, type: "countdown", scheduled_at: Date.now() + 60_000 });
    await app.db.write([{
      sql:
        "insert into session_context (session_key, worker_id, engine, session_id, work_dir, updated_at) values (?, ?, 'fake', 's', '/tmp', 1)",
      args: [key, worker.id],
    }]);
    expect(await app.call(`GET /api/contexts?session_key=${key}`)).toEqual([
      {
        session_key: key,
        worker_id: worker.id,
        worker_name: "Ada",
        engine: "fake",
        session_id: "s",
        updated_at: 1,
        active_tasks: 4,
      },
    ]);
    expect(await app.call(`DELETE /api/contexts?session_key=${key}`)).toEqual({
      cancelled_tasks: 4,
      cleared_contexts: 1,
    });
    await app.settle();
    expect(await app.db.read("select distinct status from task")).toMatchObject([{ status: "cancelled" }]);
    expect(await app.call("GET /api/executions")).toMatchObject([{ failure: "cancelled" }]);
    expect(await app.call(`GET /api/contexts?session_key=${key}`)).toEqual([]);
    expect(await app.call(`DELETE /api/contexts?session_key=${key}`)).toEqual({
      cancelled_tasks: 0,
      cleared_contexts: 0,
    });
    expect(await app.call("DELETE /api/contexts?session_key=nobody")).toEqual({
      cancelled_tasks: 0,
      cleared_contexts: 0,
    });
    expect((await app.send("DELETE /api/contexts")).status).toBe(400);
    expect((await app.send("GET /api/contexts")).status).toBe(400);
    expect((await app.send(`GET /api/contexts?session_key=${"x".repeat(257)}`)).status).toBe(400);
    expect((await app.send(`GET /api/contexts?session_key=${"x".repeat(256)}`)).status).toBe(200);
  });

  it("clears one worker's context and keeps others", async () => {
    await using app = await openApp();
    const insert = (worker: string) => ({
      sql:
        "insert into session_context (session_key, worker_id, engine, session_id, work_dir, updated_at) values ('k', ?, 'e', 's', '/', 1)",
      args: [worker],
    });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const bob = await app.call("POST /api/workers", { name: "Bob" });
    await app.db.write([insert(ada.id), insert(bob.id)]);
    expect(await app.call(`DELETE /api/contexts/${ada.id}?session_key=k`)).toEqual({
      cancelled_tasks: 0,
      cleared_contexts: 1,
    });
    expect(await app.call("GET /api/contexts?session_key=k")).toMatchObject([{ worker_id: bob.id }]);
    expect(await app.call(`DELETE /api/contexts/${UNKNOWN}?session_key=k`)).toEqual({
      cancelled_tasks: 0,
      cleared_contexts: 0,
    });
    await app.call(`PUT /api/workers/${bob.id}`, { engine: "echo" });
    expect(await app.call("GET /api/contexts?session_key=k")).toEqual([]);
  });
});
