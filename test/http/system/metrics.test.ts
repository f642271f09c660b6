import { describe, expect, it } from "vitest";
import { formatMetrics } from "../../../src/http/metrics.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { insertRows } from "../../harness/model/counters.ts";
import { startRun } from "../../harness/service/run.ts";

const LINE = /^([a-z_]+)(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? (-?\d+(\.\d+)?([eE][-+]\d+)?)$/;

/** Parses a scrape as `name{labels}` -> value. Fails on an invalid line. */
async function scrape(app: App): Promise<Map<string, number>> {
  const response = await app.server.fetch(new Request("http://localhost/metrics"));
  expect([response.status, response.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  return parse(await response.text());
}

function parse(text: string): Map<string, number> {
  expect(text.endsWith("\n")).toBe(true);
  const samples = new Map<string, number>();
  let current = "";
  for (const line of text.trimEnd().split("\n")) {
    if (line.startsWith("# HELP ")) current = line.split(" ")[2] ?? "";
    else if (line.startsWith("# TYPE ")) {
      expect(line).toMatch(new RegExp(`^# TYPE ${current} (gauge|counter)$`));
    } else {
      const [, name = "", labels = "", , value] = LINE.exec(line) ?? [];
      expect([line, name]).toEqual([line, current]);
      samples.set(name + labels, Number(value));
    }
  }
  return samples;
}

describe("GET /metrics (contract 5)", () => {
  it("has the metrics for alarms, in Prometheus' format", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { max_concurrent_runs: 1 } },
    });
    const [ada, bob] = await Promise.all(
      ["Ada", "Bob"].map((name) => app.call("POST /api/workers", { name })),
    );
    const task = (worker: { id: string }, instruction: string) =>
      app.call("POST /api/tasks", { message_id: "m", worker_id: worker.id, type: "immediate", instruction });
    await task(ada, "ok");
    await task(ada, "exit 1");
    await app.settle();
    await task(ada, "sleep 30");
    await app.until("execution.started", 3);
    await task(bob, "ok");
    const samples = await scrape(app);
    const expected: Record<string, number> = {
      svc_ready: 1,
      svc_writing_stopped: 0,
      'svc_stage_well{stage="dispatcher"}': 1,
      'svc_workers{status="working"}': 1,
      'svc_workers{status="idle"}': 1,
      'svc_tasks{status="running"}': 1,
      'svc_tasks{status="pending"}': 1,
      'svc_executions{status="running"}': 1,
      'svc_runs_ended_total{outcome="completed"}': 1,
      'svc_runs_ended_total{outcome="exit_code"}': 1,
      'svc_runs_ended_total{outcome="timeout"}': 0,
      svc_runs_max: 1,
      svc_tasks_waiting: 1,
      svc_messages_unrouted: 0,
      svc_questions_open: 0,
      svc_schedules_overdue: 0,
      svc_journal_lag_seconds: 0,
      svc_write_queue: 0,
      svc_database_busy_total: 0,
      svc_last_backup_timestamp_seconds: 0,
    };
    for (const [name, value] of Object.entries(expected)) {
      expect([name, samples.get(name)]).toEqual([name, value]);
    }
    const names = [
      "svc_database_bytes",
      "svc_disk_free_bytes",
      "process_resident_memory_bytes",
      "svc_heap_used_bytes",
    ];
    for (const name of names) {
      expect([name, samples.get(name)]).toEqual([name, expect.any(Number)]);
      expect(samples.get(name)).toBeGreaterThan(100_000);
    }
    expect([...samples.keys()].some((name) => name.startsWith("svc_build_info{version="))).toBe(true);
    expect([...samples.keys()].join()).not.toContain(ada.id);
  });

  it("has the age of waiting work and of overdue retention", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const still = app.server.stages.filter(({ name }) => name === "scheduler" || name === "dispatcher");
    await Promise.all(still.map((stage) => stage.stop()));
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const task = (id: string, more: Record<string, string | number>) => ({
      id,
      message_id: "m",
      worker_id,
      session_key: "s",
      instruction: "i",
      created_by: "x",
      created_at: 0,
      updated_at: 0,
      ...more,
    });
    const due = { type: "countdown", status: "scheduled", next_run_at: clock.now() - 90_000 };
    const waits = { type: "immediate", status: "pending", due_at: clock.now() - 30_000 };
    await app.db.write(insertRows("task", [task("due", due), task("waits", waits)]));
    // Paused and blocked tasks are not overdue.
    const long = clock.now() - 86_400_000;
    await app.db.write(insertRows("task", [
      task("paused", { ...due, next_run_at: long, paused: 1 }),
      task("held", { ...waits, due_at: long, held: "budget:x" }),
    ]));
    await app.db.write(
      insertRows("journal", [{ at: clock.now() - 31 * 86_400_000, kind: "system.started" }]),
    );
    const samples = await scrape(app);
    expect(samples.get("svc_schedules_overdue")).toBe(1);
    expect(samples.get("svc_schedules_overdue_oldest_seconds")).toBe(90);
    expect(samples.get("svc_tasks_waiting")).toBe(1);
    expect(samples.get("svc_tasks_waiting_oldest_seconds")).toBe(30);
    expect(samples.get("svc_journal_lag_seconds")).toBe(86_400);
  });

  it("reports a blocked event loop once", async () => {
    await using app = await openApp();
    await scrape(app);
    const until = performance.now() + 400;
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await scrape(app)).get("svc_event_loop_lag_seconds")).toBeGreaterThan(0.2);
    expect((await scrape(app)).get("svc_event_loop_lag_seconds")).toBeLessThan(0.2);
  });

  it("is public for direct callers on this machine, and requires read:system from others", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), server: { trusted_proxies: ["127.0.0.1"] } },
    });
    const request = (headers: Record<string, string> = {}, address = "127.0.0.1") =>
      app.server.fetch(new Request("http://localhost/metrics", { headers }), address);
    expect((await request()).status).toBe(200);
    for (const name of ["x-forwarded-for", "x-forwarded-proto", "x-real-ip", "forwarded", "via"]) {
      expect([name, (await request({ [name]: "127.0.0.1" })).status]).toEqual([name, 401]);
    }
    expect((await request({}, "192.0.2.7")).status).toBe(401);
    expect((await request({}, "::ffff:127.0.0.1")).status).toBe(200);
    const authorization = `Bearer ${await app.token()}`;
    expect((await request({ authorization }, "192.0.2.7")).status).toBe(200);
    expect((await request({ authorization: "Bearer x" })).status).toBe(401);
    expect((await app.send("POST /metrics", {})).status).toBe(405);
    const run = await startRun(app, ["read:tasks"]);
    expect((await request(run.headers, "192.0.2.7")).status).toBe(403);
  });
});

it("formatMetrics() escapes characters that would break a line", () => {
  const text = formatMetrics([{ name: "x", type: "gauge", help: "h", value: [[{ a: 'q"\\\n' }, 1.5]] }]);
  expect(text).toBe('# HELP x h\n# TYPE x gauge\nx{a="q\\"\\\\\\n"} 1.5\n');
});
