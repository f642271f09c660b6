import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { ScheduleBench } from "../../harness/model/schedule.ts";
import { waitUntil } from "../../harness/wait.ts";

const START = "2026-01-05T08:00:00Z";
const AHEAD = "2036-01-01T00:00:30Z";

const dueAt = async (app: App, table: string) =>
  (await app.db.first<{ due_at: number }>(`select due_at from ${table}`))?.due_at ?? 0;

describe("a clock that was set back [CRN-4]", () => {
  it("no task accepted during the wrong time waits for that time [CRN-4]", async () => {
    const clock = new TestClock(AHEAD);
    await using app = await openApp({ clock });
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/tasks", {
      message_id: "m",
      worker_id: id,
      instruction: "one",
      type: "immediate",
    });
    await app.settle();
    await app.call(`PUT /api/workers/${id}`, { paused: true });
    await app.call("POST /api/tasks", {
      message_id: "m",
      worker_id: id,
      instruction: "two",
      type: "immediate",
    });
    const url = "https://example.com/hook";
    await app.call("POST /api/webhooks", {
      name: "Hook",
      url,
      events: ["task.failed"],
    });
    await app.db.write([
      "insert into inbound_message (id, session_key, platform, platform_message_id, sender, content, status, due_at, received_at) " +
      "values ('i', 'local:x', 'local', 'i', 'user:admin', 'hello', 'feeding', ?, ?)",
      "insert into outbound_message (id, session_key, platform, message_id, content, status, source_type, due_at, created_at) " +
      "values ('o', 'phone:x', 'phone', 'i', 'hello', 'failed', 'bee', ?, ?)",
    ].map((sql) => ({ sql, args: [clock.now() + 5_000, clock.now()] })));
    expect((await app.db.first("select max(at) as at from ledger"))?.at).toBe(clock.now());
    clock.jump(START);
    clock.advance(1_000);
    await waitUntil("the task is due", async () => {
      const [task] = await app.db.read<{ due_at: number }>(
        "select due_at from task where status = 'pending'",
      );
      return task?.due_at === clock.now();
    });
    for (const table of ["inbound_message", "outbound_message where id = 'o'", "webhook"]) {
      expect(await dueAt(app, table), table).toBeLessThanOrEqual(clock.now());
    }
    expect((await app.db.first("select max(at) as at from ledger"))?.at).toBe(clock.now());
    await app.call(`PUT /api/workers/${id}`, { paused: false });
    await app.until("task.completed", 2);
  });

  it("is followed again after a failure, and by all schedules except invalid ones [CRN-4]", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    const broken = await bench.add("*/10 * * * *");
    const id = await bench.add("*/10 * * * *");
    bench.start();
    await bench.pass(11);
    clock.jump(AHEAD);
    await bench.settle();
    await bench.db.write([{ sql: "update task set time_zone = 'Mars/Base' where id = ?", args: [broken] }]);
    let faults = 0;
    bench.faulty.fault = () => faults++ === 0 ? "before" : "none";
    clock.jump("2026-01-05T08:12:00Z");
    await bench.settle();
    clock.advance(1_000);
    await bench.settle();
    await bench.pass(10);
    expect(await bench.fired(id)).toContain("2026-01-05T08:20");
    await bench.stop();
  });

  it("moves the usage of runs out of the future, also without other rows [CRN-4]", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    await bench.db.write([1, 2].map((runs) => ({
      sql: "insert into ledger (target, at, runs, tokens, ms, nano_usd) values ('global', ?, ?, 0, 0, 0)",
      args: [Date.parse(AHEAD) + runs, runs],
    })));
    bench.start();
    await bench.settle();
    await bench.stop();
    expect(await bench.db.read("select at, runs from ledger order by runs")).toEqual([
      { at: Date.parse(START), runs: 1 },
      { at: Date.parse(START), runs: 2 },
    ]);
  });

  it("does not resend an abandoned delivery", async () => {
    const clock = new TestClock(AHEAD);
    await using app = await openApp({ clock });
    // Creates a journal event with a future time.
    await app.call("POST /api/workers", { name: "Ada" });
    await app.db.write([["g", null], ["o", clock.now() + 5_000]].map(([id, due]) => ({
      sql:
        "insert into outbound_message (id, session_key, platform, message_id, content, status, source_type, due_at, created_at) " +
        "values (?, ?, 'phone', 'i', 'hello', 'failed', 'bee', ?, ?)",
      args: [id ?? "", `phone:${id}`, due ?? null, clock.now()],
    })));
    clock.jump(START);
    clock.advance(1_000);
    const attempt = async (id: string) =>
      (await app.db.first<{ attempt: number }>("select attempt from outbound_message where id = ?", [id]))
        ?.attempt;
    await waitUntil("what waited was looked at", async () => await attempt("o") === 1);
    expect(await attempt("g")).toBe(0);
  });
});
