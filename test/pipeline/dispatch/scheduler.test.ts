import { describe, expect, it } from "vitest";
import { record } from "../../../src/store/events/journal.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createRandom, ScheduleBench } from "../../harness/model/schedule.ts";
import { countProcessorMs } from "../../harness/service/processor_time.ts";

const START = "2026-01-05T08:00:00Z";

describe("schedules (contract 3)", () => {
  it("CRN-1: six hours of */1 with two schedulers and a hundred crashes during the tick: no minute twice, none skipped [CRN-1]", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    const id = await bench.add("*/1 * * * *");
    const chance = createRandom(1);
    let crashes = 0;
    bench.faulty.fault = () => {
      if (crashes >= 100 || chance() > 0.25) return "none";
      crashes++;
      return chance() < 0.5 ? "before" : "after";
    };
    bench.start(2);
    for (let minute = 0; minute < 360; minute++) {
      clock.advance(60_000);
      const before = crashes;
      await bench.settle();
      if (crashes > before) {
        // Servers that hit the fault are killed and restarted.
        await bench.stop();
        bench.start(2);
        await bench.settle();
      }
      while ((await bench.fired(id)).length < minute + 1) {
        clock.advance(0);
        await bench.settle();
      }
    }
    await bench.stop();
    const fired = await bench.fired(id);
    expect(crashes).toBe(100);
    expect(fired).toHaveLength(360);
    expect(fired[0]).toBe("2026-01-05T08:01");
    expect(fired.at(-1)).toBe("2026-01-05T14:00");
    expect(await bench.runs()).toBe(360);
    expect(await bench.left("task.missed")).toBe(0);
    expect(await bench.left("task.skipped")).toBe(0);
  });

  it.each([
    [10, "* * * * *", 1, 9, "2026-01-05T08:10"],
    [10, "*/5 * * * *", 1, 1, "2026-01-05T08:10"],
    [90, "* * * * *", 1, 89, "2026-01-05T09:30"],
    [90, "0 * * * *", 1, 0, "2026-01-05T09:00"],
    [90, "15 8 * * *", 0, 1, undefined],
    [3 * 24 * 60, "* * * * *", 1, 499, "2026-01-08T08:00"],
    [3 * 24 * 60, "30 7 * * *", 1, 2, "2026-01-08T07:30"],
    [3 * 24 * 60, "0 6 * * *", 0, 3, undefined],
  ])(
    "CRN-2: after %i minutes down, %s runs %i times and %i are recorded as missed [CRN-2]",
    async (minutes, cron, runs, missed, last) => {
      const clock = new TestClock(START);
      const bench = await ScheduleBench.open(clock);
      const id = await bench.add(cron);
      clock.advance(minutes * 60_000);
      bench.start();
      await bench.settle();
      expect(await bench.runs()).toBe(runs);
      expect((await bench.fired(id)).at(-1)).toBe(last);
      expect(await bench.left("task.missed")).toBe(missed);
      await bench.pass(25, 60);
      expect(await bench.runs(), "it goes on").toBeGreaterThan(runs);
      await bench.stop();
    },
  );

  it("CRN-3: a clock that was wrong by decades costs one run and little time, and the schedule continues [CRN-3]", async () => {
    const clock = new TestClock("1970-01-01T00:00:00Z");
    const bench = await ScheduleBench.open(clock);
    const id = await bench.add("* * * * *");
    clock.jump("2036-06-15T12:34:56Z");
    const processorMs = countProcessorMs();
    bench.start();
    await bench.settle();
    expect(processorMs()).toBeLessThan(500);
    expect(await bench.fired(id)).toEqual(["2036-06-15T12:34"]);
    await bench.pass(3);
    expect(await bench.fired(id)).toEqual([
      "2036-06-15T12:34",
      "2036-06-15T12:35",
      "2036-06-15T12:36",
      "2036-06-15T12:37",
    ]);
    await bench.stop();
  });

  it("CRN-4: a clock that steps back fires no minute twice and skips none afterwards [CRN-4]", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    const id = await bench.add("*/10 * * * *");
    bench.start();
    await bench.pass(60);
    const before = await bench.fired(id);
    expect(before).toHaveLength(6);
    clock.jump(Date.parse(START) + 15 * 60_000);
    await bench.settle();
    await bench.pass(45);
    expect(await bench.fired(id), "no second firing").toEqual(before);
    await bench.pass(30);
    expect((await bench.fired(id)).slice(6), "and none missing").toEqual([
      "2026-01-05T09:10",
      "2026-01-05T09:20",
      "2026-01-05T09:30",
    ]);
    expect(await bench.runs()).toBe(9);
    await bench.stop();
  });

  it("CRN-4: a clock that was temporarily in the future skips no time of the present", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    const id = await bench.add("*/10 * * * *");
    bench.start();
    await bench.pass(11);
    clock.jump("2036-01-01T00:00:30Z");
    await bench.settle();
    clock.jump("2026-01-05T08:12:00Z");
    await bench.settle();
    await bench.pass(30);
    await bench.stop();
    expect(await bench.fired(id)).toEqual([
      "2026-01-05T08:10",
      "2026-01-05T08:20",
      "2026-01-05T08:30",
      "2026-01-05T08:40",
      "2036-01-01T00:00",
    ]);
  });

  it.each(
    [
      ["", []],
      [", and has written events since", [{ kind: "system.started" }]],
    ] as const,
  )(
    "CRN-4: skips no time of the present when the server was down while the clock was corrected%s",
    async (_, events) => {
      const clock = new TestClock("2036-01-01T00:00:30Z");
      const bench = await ScheduleBench.open(clock);
      const id = await bench.add("*/10 * * * *");
      bench.start();
      await bench.pass(11);
      await bench.stop();
      clock.jump(START);
      for (const event of events) await bench.db.write([record(clock.now(), event)]);
      bench.start();
      await bench.settle();
      await bench.pass(20);
      expect((await bench.fired(id)).slice(0, 2)).toEqual(["2026-01-05T08:10", "2026-01-05T08:20"]);
      await bench.stop();
    },
  );

  it("CRN-7: a time during the previous run is skipped and counted [CRN-7]", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    await bench.add("* * * * *");
    bench.runMs = 90_000;
    bench.start();
    for (let i = 0; i < 20; i++) {
      clock.advance(30_000);
      await bench.settle();
    }
    await bench.stop();
    expect(await bench.runs() + await bench.left("task.skipped")).toBe(10);
    expect(await bench.runs()).toBe(5);
    const open = await bench.db.first<{ most: number }>(
      `select max(n) as most from (
        select count(*) as n from execution one
        join execution two on two.created_at < coalesce(one.completed_at, 9e15) and coalesce(two.completed_at, 9e15) > one.created_at
        group by one.id)`,
    );
    expect(open?.most).toBe(1);
  });

  it("a time in the skipped hour of a clock change fires once that day, after the hour; one in the repeated hour fires once", async () => {
    const clock = new TestClock("2026-03-28T00:00:00Z");
    const bench = await ScheduleBench.open(clock, { zone: "Europe/Berlin" });
    const id = await bench.add("30 2 * * *");
    bench.start();
    await bench.pass(3 * 24, 60);
    clock.advance(Date.parse("2026-10-24T12:00:00Z") - clock.now());
    await bench.settle();
    await bench.pass(2 * 24 * 2, 30);
    await bench.stop();
    const fired = await bench.fired(id);
    expect(fired.filter((at) => at.startsWith("2026-03"))).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ]);
    expect(fired.filter((at) => at.startsWith("2026-10"))).toEqual(["2026-10-25T00:30", "2026-10-26T01:30"]);
  });

  it("CRN-8: a minute of database errors only delays due tasks [CRN-8]", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    const id = await bench.add("* * * * *");
    bench.start();
    await bench.pass(2);
    bench.faulty.fault = () => "before";
    for (let i = 0; i < 60; i++) {
      clock.advance(1_000);
      await bench.settle();
    }
    expect(await bench.fired(id)).toHaveLength(2);
    bench.faulty.fault = () => "none";
    for (let i = 0; i < 6; i++) {
      clock.advance(1_000);
      await bench.settle();
    }
    expect(await bench.fired(id)).toHaveLength(3);
    await bench.pass(2);
    expect(await bench.fired(id)).toEqual(
      ["01", "02", "03", "04", "05"].map((minute) => `2026-01-05T08:${minute}`),
    );
    await bench.stop();
  });

  it("a schedule that cannot be computed does not delay the others", async () => {
    const clock = new TestClock(START);
    const bench = await ScheduleBench.open(clock);
    const broken = await bench.add("* * * * *");
    const whole = await bench.add("* * * * *");
    await bench.db.write([{ sql: "update task set time_zone = 'Mars/Base' where id = ?", args: [broken] }]);
    bench.start();
    await bench.pass(3);
    expect(await bench.fired(whole)).toHaveLength(3);
    expect(await bench.fired(broken)).toEqual([]);
    await bench.stop();
  });
});

describe("countdowns [DSP-7, DSP-8]", () => {
  it("follow the wall clock, never early, and cost nothing while they wait [DSP-8]", async () => {
    const clock = new TestClock(START);
    await using app = await openApp({ clock });
    const at = clock.now() + 3_600_000;
    const id = await countdown(app, at);
    clock.advance(3_599_999);
    await ticks(app);
    expect((await app.call(`GET /api/tasks/${id}`)).status).toBe("scheduled");
    clock.advance(1);
    await app.settle();
    expect((await app.call(`GET /api/tasks/${id}`)).status).toBe("completed");
    const early = await countdown(app, clock.now() + 3_600_000);
    clock.jump(clock.now() + 3_600_000);
    clock.advance(1_000);
    await app.until("task.due", 2);
    await app.settle();
    expect((await app.call(`GET /api/tasks/${early}`)).status).toBe("completed");
    const back = await countdown(app, clock.now() + 10_000);
    clock.jump(clock.now() - 3_600_000);
    clock.advance(10_000);
    await ticks(app);
    expect((await app.call(`GET /api/tasks/${back}`)).status).toBe("scheduled");
  });
});

async function countdown(app: App, scheduled_at: number): Promise<string> {
  const [worker = await app.call("POST /api/workers", { name: "Ada" })] = await app.call("GET /api/workers");
  const body = { message_id: "m", worker_id: worker.id, instruction: "x", type: "countdown", scheduled_at };
  return (await app.call("POST /api/tasks", body)).id;
}

/** Lets every stage run another round. */
async function ticks(app: App): Promise<void> {
  for (const stage of app.server.stages) {
    const target = stage.rounds + 1;
    stage.wake();
    while (stage.rounds < target || !stage.idle) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
