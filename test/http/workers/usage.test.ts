import { describe, expect, it } from "vitest";
import { TestClock } from "../../harness/clock.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { ctl } from "../../harness/terminal.ts";
import { openApp } from "../../harness/service/app.ts";

const DAY_MS = 86_400_000;

describe("GET /api/usage/workers (contract 17)", () => {
  it("shows the last run, the waiting and blocked tasks, and the usage per day of the service's time zone", async () => {
    const config = { scheduler: { time_zone: "Pacific/Chatham" }, engines: buildFakeEngines() };
    await using app = await openApp({ config });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const bob = await app.call("POST /api/workers", { name: "Bob", paused: true });
    const give = (worker_id: string, instruction: string) =>
      app.call("POST /api/tasks", { message_id: "m", worker_id, instruction, type: "immediate" });
    await give(ada.id, "say hello");
    await app.settle();
    await give(ada.id, "exit 3");
    await app.settle();
    const runs = { name: "Runs", unit: "runs", limit: 0, period: "total", target: `worker:${ada.id}` };
    await app.call("POST /api/budgets", runs);
    await give(ada.id, "say more");
    await give(bob.id, "say one");
    await app.settle();
    const { days, workers } = await app.call("GET /api/usage/workers");
    const today = new Intl.DateTimeFormat("en-CA", { timeZone: "Pacific/Chatham" }).format(Date.now());
    expect(days).toHaveLength(7);
    expect(days.at(-1)).toBe(today);
    const [last] = await app.call("GET /api/executions");
    const common = { deleted: false, pending: 1 };
    expect(workers).toMatchObject([
      {
        ...common,
        worker_name: "Ada",
        blocked: 1,
        last_run: { id: last.id, status: "failed", created_at: last.created_at },
        days: [{ day: today, executions: 2, failed: 1 }],
      },
      { ...common, worker_name: "Bob", blocked: 0, last_run: null, days: [] },
    ]);
  });

  it("keeps the usage of a deleted worker under its last name, and refuses too many days", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await app.call("POST /api/workers", { name: "Zoe" });
    await app.call("POST /api/workers", { name: "Ada" });
    const task = { message_id: "m", worker_id: id, instruction: "say hello", type: "immediate" };
    await app.call("POST /api/tasks", task);
    await app.settle();
    await app.call(`DELETE /api/workers/${id}`);
    const { workers } = await app.call("GET /api/usage/workers?days=1");
    expect(workers).toMatchObject([
      { worker_name: "Ada", deleted: false, days: [] },
      { worker_name: "Zoe", deleted: true, days: [{ executions: 1, failed: 0 }] },
    ]);
    expect((await app.send("GET /api/usage/workers?days=32")).status).toBe(400);
  });

  it("counts each run on one day, from midnight to midnight", async () => {
    const clock = new TestClock("2026-03-29T12:00:00Z");
    await using app = await openApp({ clock, config: { scheduler: { time_zone: "Europe/Berlin" } } });
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    // Midnight in Berlin is 23:00 UTC before the clock change of this day.
    const times = [
      "2026-03-27T22:59:00Z",
      "2026-03-28T22:59:00Z",
      "2026-03-28T23:00:00Z",
      "2026-03-29T11:59:00Z",
    ];
    await app.db.write(times.map((time) => ({
      sql: "insert into usage (bucket_start, worker_id, executions, failed, ms) values (?, ?, 1, 0, 60000)",
      args: [Math.floor(Date.parse(time) / 900_000), id],
    })));
    const { days, workers: [ada] } = await app.call("GET /api/usage/workers?days=3");
    expect(days).toEqual(["2026-03-27", "2026-03-28", "2026-03-29"]);
    expect(ada.days.map(({ day, executions }: { day: string; executions: number }) => [day, executions]))
      .toEqual([
        ["2026-03-27", 1],
        ["2026-03-28", 1],
        ["2026-03-29", 2],
      ]);
  });
});

it("GET /api/usage counts the same calendar days as the usage of each worker", async () => {
  const clock = new TestClock("2026-03-29T12:00:00Z");
  await using app = await openApp({ clock, config: { scheduler: { time_zone: "Europe/Berlin" } } });
  const { id } = await app.call("POST /api/workers", { name: "Ada" });
  // Just before and just after midnight in Berlin, and at the start of the last 7 times 24 hours.
  await app.db.write(["2026-03-22T12:00:00Z", "2026-03-22T22:59:00Z", "2026-03-22T23:00:00Z"].map((time) => ({
    sql:
      "insert into usage (bucket_start, worker_id, executions, failed, ms, cost_usd) values (?, ?, 1, 0, 1, 2)",
    args: [Math.floor(Date.parse(time) / 900_000), id],
  })));
  const { workers: [ada] } = await app.call("GET /api/usage/workers?days=7");
  expect(ada.days).toMatchObject([{ day: "2026-03-23", executions: 1, cost_usd: 2 }]);
  expect(await app.call("GET /api/usage?days=7")).toMatchObject([{ key: id, executions: 1, cost_usd: 2 }]);
  expect(await app.call("GET /api/usage?days=8")).toMatchObject([{ executions: 3 }]);
  expect(await app.call("GET /api/usage")).toMatchObject([{ executions: 3 }]);
  const { out } = await ctl(app, "usage --days 7 --json");
  expect(JSON.parse(out)).toMatchObject([{ executions: 1, cost_usd: 2 }]);
});

describe("the forecast of a budget (contract 14)", () => {
  it("expects the usage of the period at the pace of the last 7 days, and says when the limit is reached", async () => {
    const clock = new TestClock("2026-06-11T00:00:00Z");
    await using app = await openApp({ clock, config: { scheduler: { time_zone: "UTC" } } });
    // Ten runs on each of the last ten days.
    await app.db.write(Array.from({ length: 10 }, (_, day) => ({
      sql: "insert into ledger (target, at, runs, tokens, ms, nano_usd) values ('global', ?, ?, 0, 0, 0)",
      args: [clock.now() - (10 - day) * DAY_MS + 1_000, (day + 1) * 10],
    })));
    const create = (name: string, limit: number, period: string) =>
      app.call("POST /api/budgets", { name, unit: "runs", limit, period });
    const days = (count: number) => clock.now() + count * DAY_MS;
    expect(await create("Enough", 400, "month")).toMatchObject({
      used: 100,
      forecast: 300,
      runs_out_at: null,
    });
    expect(await create("Tight", 150, "month")).toMatchObject({ forecast: 300, runs_out_at: days(5) });
    expect(await create("Day", 4, "24h")).toMatchObject({ forecast: 10, runs_out_at: null });
    expect(await create("Ever", 500, "total")).toMatchObject({ forecast: null, runs_out_at: days(40) });
    const listed = await app.call("GET /api/budgets");
    expect(listed.map(({ name, forecast }: { name: string; forecast: number }) => [name, forecast])).toEqual([
      ["Ever", null],
      ["Day", 10],
      ["Tight", 300],
      ["Enough", 300],
    ]);
  });
});
