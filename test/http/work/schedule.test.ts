import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { readAll } from "../requests.ts";
import { TestClock } from "../../harness/clock.ts";

const NOW = Date.parse("2026-01-05T08:00:00Z");
const MINUTE_MS = 60_000;

// deno-lint-ignore no-explicit-any
type Json = any;

async function withWorker(app: App) {
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const post = (more: Json): Promise<Json> =>
    app.call("POST /api/tasks", { message_id: "m", worker_id: worker.id, instruction: "say hi", ...more });
  const cron = (cron: string, more: Json = {}) => post({ type: "scheduled", cron, ...more });
  return { worker, post, cron };
}

const names = (rows: Json[]) => rows.map((row) => row.name);

describe("GET /api/schedules (contract 15)", () => {
  it("lists schedules and countdowns, soonest first and without a next time last, by page and cursor", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, inMemory: true });
    const { post, cron } = await withWorker(app);
    await post({ type: "immediate" });
    await cron("0 12 * * *", { name: "noon" });
    await cron("0 9 * * *", { name: "nine" });
    await post({ type: "countdown", scheduled_at: NOW + 90 * MINUTE_MS, name: "soon" });
    await cron("30 8 * * *", { name: "paused", paused: true });
    const ended = await cron("0 10 * * *", { name: "ended" });
    await app.call(`POST /api/tasks/${ended.id}/cancel`);
    const all = await app.send("GET /api/schedules");
    expect(names(all.body)).toEqual(["nine", "soon", "noon", "paused", "ended"]);
    expect(all.headers.get("x-total-count")).toBe("5");
    const { rows, totals } = await readAll(app, "/api/schedules?page_size=2");
    expect([names(rows), totals.length]).toEqual([names(all.body), 3]);
    expect(names(await app.call("GET /api/schedules?page_size=2&page=2"))).toEqual(["noon", "paused"]);
    const of = async (query: string) => names(await app.call(`GET /api/schedules?${query}`));
    expect(await of("paused=true")).toEqual(["paused"]);
    expect(await of("paused=false&status=scheduled")).toEqual(["nine", "soon", "noon"]);
    expect(await of("failing=true")).toEqual([]);
    expect(await of(`worker_id=${ended.worker_id}&status=cancelled`)).toEqual(["ended"]);
    expect((await app.send("GET /api/schedules?paused=maybe")).status).toBe(400);
  });
});

describe("PUT /api/tasks/:id (contract 15)", () => {
  it("changes the given fields, computes the next time, and accepts the response of GET", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, inMemory: true });
    const { worker, cron } = await withWorker(app);
    const task = await cron("0 12 * * *");
    expect(task).toMatchObject({
      name: "",
      overlap: "skip",
      pause_after_failures: 5,
      next_run_at: NOW + 240 * MINUTE_MS,
    });
    const change = {
      name: "Nightly",
      instruction: "say more",
      cron: "0 9 * * *",
      time_zone: "Europe/Berlin",
      overlap: "queue",
      gate: { command: ["true"], timeout_ms: 60_000 },
      pause_after_failures: 2,
      until: NOW + 30 * 24 * 60 * MINUTE_MS,
      max_runs: 7,
      verify: { command: ["make", "test"], timeout_ms: 5_000, attempts: 1 },
    };
    const updated = await app.call(`PUT /api/tasks/${task.id}`, change);
    expect(updated).toMatchObject({
      ...change,
      next_run_at: NOW + 24 * 60 * MINUTE_MS,
      worker_id: worker.id,
    });
    const again = await app.call(`PUT /api/tasks/${task.id}`, updated);
    expect(again).toEqual(updated);
    clock.advance(10);
    expect(await app.call(`PUT /api/tasks/${task.id}`, { gate: null, until: null, max_runs: null }))
      .toMatchObject({
        gate: null,
        until: null,
        max_runs: null,
        verify: change.verify,
      });
    const other = await app.call("POST /api/workers", { name: "Bob" });
    expect((await app.call(`PUT /api/tasks/${task.id}`, { worker_id: other.id })).worker_id).toBe(other.id);
  });

  it.each([
    [{ cron: "61 * * * *" }, "cron"],
    [{ cron: "" }, "cron"],
    [{ time_zone: "Mars/Base" }, "time_zone"],
    [{ scheduled_at: NOW + 60_000 }, "scheduled_at"],
    [{ worker_id: "01a1fd23-4a4c-746f-99ac-8860e2641168" }, "worker_id"],
    [{ until: NOW + 1 }, "until"],
    [{ max_runs: 0 }, "max_runs"],
    [{ overlap: "both" }, "overlap"],
    [{ gate: { command: Array(3).fill("x".repeat(3_000)) } }, "gate.command"],
    [{ gate: { command: ["true"], timeout_ms: 0 } }, "gate.timeout_ms"],
    [{ pause_after_failures: -1 }, "pause_after_failures"],
    [{ instruction: " " }, "instruction"],
    [{ name: "two\nlines" }, "name"],
    [{ gate: { command: [] } }, "gate.command"],
    [{ gate: { command: [""] } }, "gate.command.0"],
    [{ verify: { command: ["x"], attempts: 11 } }, "verify.attempts"],
    [{ deliver_to: "a\u0000b" }, "deliver_to"],
    [{ nmae: "x" }, "nmae"],
  ])("refuses %j", async (change, path) => {
    await using app = await openApp({ clock: new TestClock("2026-01-05T08:00:00Z"), inMemory: true });
    const { cron } = await withWorker(app);
    const task = await cron("0 12 * * *");
    const reply = await app.send(`PUT /api/tasks/${task.id}`, change);
    expect([reply.status, reply.body.errors?.[0]?.path]).toEqual([400, path]);
    expect(await app.call(`GET /api/tasks/${task.id}`)).toEqual(task);
  });

  it("accepts only schedules and countdowns that have not ended", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, inMemory: true });
    const { post, cron } = await withWorker(app);
    const ended = await cron("0 12 * * *");
    await app.call(`POST /api/tasks/${ended.id}/cancel`);
    const immediate = await post({ type: "immediate" });
    for (const { id } of [ended, immediate]) {
      expect((await app.send(`PUT /api/tasks/${id}`, { name: "x" })).status).toBe(409);
    }
    const countdown = await post({ type: "countdown", scheduled_at: NOW + 60_000 });
    const at = NOW + 120_000;
    expect(await app.call(`PUT /api/tasks/${countdown.id}`, { scheduled_at: at })).toMatchObject({
      scheduled_at: at,
      next_run_at: at,
    });
    for (const change of [{ cron: "0 1 * * *" }, { max_runs: 2 }, { scheduled_at: NOW + 4_999 }]) {
      expect((await app.send(`PUT /api/tasks/${countdown.id}`, change)).status).toBe(400);
    }
    expect((await app.send("PUT /api/tasks/01a1fd23-4a4c-746f-99ac-8860e2641168", { name: "x" })).status)
      .toBe(404);
  });

  it("a paused schedule does not fire, can be run by hand, and does not catch up when resumed", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, inMemory: true });
    const { cron, post } = await withWorker(app);
    const task = await cron("*/10 * * * *");
    const once = await post({ type: "countdown", scheduled_at: NOW + 5 * MINUTE_MS });
    for (const { id } of [task, once]) {
      expect(await app.call(`PUT /api/tasks/${id}`, { paused: true })).toMatchObject({
        paused: true,
        status: "scheduled",
        next_run_at: null,
        reason: "paused by user:admin",
      });
    }
    clock.advance(35 * MINUTE_MS);
    await app.settle();
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({ run_count: 0, run_no: 0 });
    await app.call(`POST /api/tasks/${task.id}/run`, {});
    await app.settle();
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({
      run_count: 1,
      paused: true,
      next_run_at: null,
    });
    expect(await app.call(`PUT /api/tasks/${task.id}`, { paused: false })).toMatchObject({
      paused: false,
      reason: "",
      next_run_at: NOW + 40 * MINUTE_MS,
    });
    await app.settle();
    expect((await app.call(`GET /api/tasks/${task.id}`)).run_count).toBe(1);
    clock.advance(5 * MINUTE_MS);
    await app.until("execution.completed", 2);
    const late = await app.send(`PUT /api/tasks/${once.id}`, { paused: false });
    expect([late.status, late.body.detail]).toEqual([409, expect.stringContaining("its time has passed")]);
    await app.call(`PUT /api/tasks/${once.id}`, { paused: false, scheduled_at: clock.now() + 5_000 });
    clock.advance(5_000);
    await app.until("execution.completed", 3);
  });
});

describe("GET /api/schedules/preview (contract 15)", () => {
  const preview = async (cron: string, zone: string, now: string, count = 3) => {
    await using app = await openApp({ clock: new TestClock(now), inMemory: true });
    const query = new URLSearchParams({ cron, time_zone: zone, count: String(count) });
    const rows: Json[] = await app.call(`GET /api/schedules/preview?${query}`);
    return rows.map(({ local, note }) => [local, note]);
  };

  it("marks skipped and repeated times, and the change of the clock", async () => {
    expect(await preview("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z")).toEqual([
      ["2026-03-28T02:30+01:00", ""],
      [
        "2026-03-29T03:00+02:00",
        "moved: on this day the clock skips the hour in which the schedule would fire",
      ],
      ["2026-03-30T02:30+02:00", ""],
    ]);
    expect(await preview("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      [
        "2026-10-25T02:30+02:00",
        "on this day the clock shows this time twice: the schedule fires the first time",
      ],
      ["2026-10-26T02:30+01:00", "since the previous time, the clock went back by 60 minutes"],
    ]);
    expect(await preview("0 * * * *", "America/New_York", "2026-11-01T04:30:00Z")).toEqual([
      [
        "2026-11-01T01:00-04:00",
        "on this day the clock shows this time twice: the schedule fires both times",
      ],
      ["2026-11-01T01:00-05:00", "since the previous time, the clock went back by 60 minutes"],
      ["2026-11-01T02:00-05:00", ""],
    ]);
    expect(await preview("0 12 * * *", "America/New_York", "2026-03-07T00:00:00Z", 2)).toEqual([
      ["2026-03-07T12:00-05:00", ""],
      ["2026-03-08T12:00-04:00", "since the previous time, the clock went forward by 60 minutes"],
    ]);
    expect(await preview("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 1)).toEqual([
      [
        "2026-04-05T01:45+11:00",
        "on this day the clock shows this time twice: the schedule fires the first time",
      ],
    ]);
  });

  it("returns at most fifty times, and refuses a cron that never fires", async () => {
    await using app = await openApp({ inMemory: true });
    const get = (query: string) => app.send(`GET /api/schedules/preview?${query}`);
    expect((await get("cron=*/5+*+*+*+*&count=50")).body).toHaveLength(50);
    const queries = [
      "cron=*/5+*+*+*+*&count=51",
      "cron=x",
      "cron=0+0+31+2+*",
      "cron=*+*+*+*+*&time_zone=Mars",
    ];
    for (const query of queries) {
      expect([query, (await get(query)).status]).toEqual([query, 400]);
    }
  });
});
