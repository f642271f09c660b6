import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { ScheduleBench } from "../../harness/model/schedule.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const MINUTE_MS = 60_000;

/** Fails when the named file exists. */
const FAILS = {
  kind: "command",
  command: "sh",
  args: ["-c", "read -r go; until [ -e $go ]; do sleep 0.02; done; echo broken >&2; exit 3"],
  shell: [],
};

/** Creates a schedule of every ten minutes in a fleet, whose run lasts until `end` lets it fail. */
async function running(more: Json = {}) {
  const clock = new TestClock("2026-01-05T08:00:00Z");
  const app = await openApp({ clock, config: { engines: { default: "fails", fails: FAILS } } });
  const go = join(app.dataDir, "go");
  const schedule = { name: "S", worker: "Ada", instruction: go, cron: "*/10 * * * *", ...more };
  const apply = (fields: Json) =>
    app.call("POST /api/fleet/apply", {
      fleet: { fleet: "f", workers: [{ name: "Ada" }], schedules: [{ ...schedule, ...fields }] },
    });
  await apply({});
  const [worker] = await app.call("GET /api/workers");
  const [{ id }] = await app.call("GET /api/schedules");
  clock.advance(10 * MINUTE_MS);
  await app.until("execution.started");
  return {
    ...{ app, clock, id, worker, apply },
    get: (): Promise<Json> => app.call(`GET /api/tasks/${id}`),
    end: async () => {
      await Deno.writeTextFile(go, "");
      await app.until("execution.failed");
    },
  };
}

describe("the end of a schedule's run (contract 15)", () => {
  it("sends no notice of a pause for failures if a user paused the schedule during the run", async () => {
    const { app, id, worker, get, end } = await running({ pause_after_failures: 5 });
    await using _ = app;
    const { id: session } = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`PUT /api/tasks/${id}`, { deliver_to: `local:${session}`, paused: true });
    await end();
    expect(await get()).toMatchObject({ status: "scheduled", paused: true, failures_in_row: 1 });
    const said = await app.call(`GET /api/local/sessions/${session}/messages`);
    expect(said.filter(({ content }: Json) => content.startsWith("The schedule"))).toEqual([]);
  });

  it("is stored when the schedule's time zone became unknown, and the schedule is checked again", async () => {
    const { app, clock, id, get, end } = await running();
    await using _ = app;
    await app.db.write([{
      sql: "update task set time_zone = 'Mars/Base', next_run_at = ? where id = ?",
      args: [clock.now(), id],
    }]);
    await end();
    expect(await get()).toMatchObject({ status: "scheduled", failures_in_row: 1 });
  });

  it("leaves no waiting time if a fleet paused the schedule during the run", async () => {
    const { app, clock, id, apply, end } = await running({ overlap: "queue" });
    await using _ = app;
    clock.advance(10 * MINUTE_MS);
    await app.until("task.queued");
    await apply({ paused: true });
    const [row] = await app.db.read("select paused, queued_at from task where id = ?", [id]);
    expect(row).toEqual({ paused: 1, queued_at: null });
    await end();
  });
});

describe("a schedule whose time zone has changed", () => {
  it("does not fire at a time that is not in its cron, and continues with the next", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    const bench = await ScheduleBench.open(clock);
    const id = await bench.add("0 9 * * *");
    await bench.db.write([{ sql: "update task set time_zone = 'Asia/Tokyo' where id = ?", args: [id] }]);
    bench.start();
    await bench.pass(18, 60);
    await bench.stop();
    expect(await bench.fired(id)).toEqual(["2026-01-06T00:00"]);
  });
});
