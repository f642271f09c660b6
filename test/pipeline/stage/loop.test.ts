import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Stage } from "../../../src/pipeline/stage/stage.ts";
import { Wakeups } from "../../../src/base/wakeups.ts";
import { TestClock } from "../../harness/clock.ts";

it("Wakeups: closing a listener twice does not affect the next one", async () => {
  const wakeups = new Wakeups();
  const first = wakeups.listen("door");
  first.close();
  const second = wakeups.listen("door");
  first.close();
  wakeups.notify("door");
  await second.next(new TestClock(), 60_000);
  expect(wakeups.size).toBe(1);
});

describe("Stage", () => {
  it("starts and stops a hundred times, and leaves no listener [SHD-6]", async () => {
    const wakeups = new Wakeups();
    for (let i = 0; i < 100; i++) {
      let rounds = 0;
      const step = () => Promise.resolve(++rounds && Infinity);
      const stage = new Stage({ clock: systemClock, wakeups }, { name: "test", wakeup: "test", step });
      stage.start();
      stage.start();
      stage.wake();
      await stage.stop();
      expect(rounds).toBeGreaterThan(0);
    }
    expect(wakeups.size).toBe(0);
  });

  it("logs errors of its step, backs off, and continues [SHD-8]", async () => {
    const clock = new TestClock();
    const wakeups = new Wakeups();
    let calls = 0;
    const step = () => ++calls < 4 ? Promise.reject(new Error("broken")) : Promise.resolve(Infinity);
    const stage = new Stage({ clock, wakeups }, { name: "test", wakeup: "test", step });
    stage.start();
    for (const backOffMs of [200, 400, 800]) {
      const before = calls;
      await until(() => stage.rounds === before + 0 && stage.idle || calls === before);
      clock.advance(backOffMs - 1);
      await turn();
      expect(calls).toBe(before === 0 ? 1 : before);
      clock.advance(1);
      await until(() => calls > before || calls === 4);
    }
    await until(() => calls === 4);
    expect(stage.well).toBe(true);
    await stage.stop();
  });

  it("runs one round for all wakeups within its pause, and loses no later one", async () => {
    const wakeups = new Wakeups();
    let made = 0;
    const seen: number[] = [];
    const step = () => Promise.resolve(seen.push(made) && Infinity);
    const services = { clock: new TestClock(), wakeups };
    const stage = new Stage(services, { name: "test", wakeup: "test", step, pauseMs: 200 });
    stage.start();
    await until(() => seen.length === 1);
    for (let i = 0; i < 3; i++) {
      made++;
      stage.wake();
      await turn();
      // A stage in its pause is not idle.
      expect(stage.idle).toBe(false);
    }
    await until(() => stage.rounds === 2 && stage.idle);
    made++;
    stage.wake();
    await until(() => stage.rounds === 3 && stage.idle);
    expect(seen).toEqual([0, 3, 4]);
    await stage.stop();
  });

  it("finishes the round in progress before it stops", async () => {
    let finished = false;
    const wakeups = new Wakeups();
    const step = async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      finished = true;
      return Infinity;
    };
    const stage = new Stage({ clock: systemClock, wakeups }, { name: "test", wakeup: "test", step });
    stage.start();
    await turn();
    await stage.stop();
    expect(finished).toBe(true);
  });

  it("is unhealthy when a round takes longer than a minute [CRN-9]", async () => {
    const clock = new TestClock();
    let release = (_ms: number) => {};
    const step = () => new Promise<number>((resolve) => release = resolve);
    const stage = new Stage({ clock, wakeups: new Wakeups() }, { name: "test", wakeup: "test", step });
    stage.start();
    await turn();
    expect(stage.well).toBe(true);
    clock.advance(60_000);
    expect(stage.well).toBe(false);
    release(Infinity);
    await turn();
    expect(stage.well).toBe(true);
    await stage.stop();
  });
});

async function turn(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 5));
}

async function until(done: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !done(); i++) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(done()).toBe(true);
}
