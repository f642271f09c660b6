import { describe, expect, it } from "vitest";
import { createId } from "../../src/base/id.ts";
import { yieldToLoop } from "../../src/base/yield_to_loop.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import type { RunIdentity } from "../../src/domain/call/run_identity.ts";
import { OutcomeWriter } from "../../src/run/outcome_writer.ts";
import type { Interruption } from "../../src/domain/work/interruption.ts";
import { RunRegistry } from "../../src/run/run_registry.ts";
import { TestClock } from "../harness/clock.ts";

function identity(keys: Partial<RunIdentity> = {}): RunIdentity {
  return {
    session_key: "local:1",
    worker_id: "",
    task_id: "",
    execution_id: createId(),
    message_id: "",
    attempt: 1,
    run_id: crypto.randomUUID(),
    ...keys,
  };
}

/** Creates a registry whose runs last until they are interrupted; `stored` collects the outcomes. */
function setUp(broken = () => false) {
  const clock = new TestClock();
  const runner = new RunRegistry(clock, new OutcomeWriter(clock, broken));
  const stored: [string, Interruption | null][] = [];
  const start = (keys: Partial<RunIdentity> = {}, timeoutMs?: number) =>
    runner.start({
      identity: identity(keys),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      work: (signal) =>
        new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("ended"))),
      broken: "broken",
      // A commit takes a turn of the event loop.
      async store(outcome, interruption) {
        await yieldToLoop();
        stored.push([outcome, interruption]);
      },
    });
  return { clock, runner, stored, start };
}

/** Lets time pass and waits for all work that it triggers. */
async function passing(clock: TestClock, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  clock.advance(ms);
  await new Promise((resolve) => setTimeout(resolve));
}

describe("RunRegistry", () => {
  it("a throwing run is broken; one without a database is lost and retried [DBF-10]", async () => {
    const { runner } = setUp();
    const stored: string[] = [];
    const run = (error: Error) =>
      runner.start({
        identity: identity(),
        work: () => Promise.reject(error),
        broken: "broken",
        lost: "lost",
        store(outcome) {
          stored.push(outcome);
          return Promise.resolve();
        },
      });
    await run(new Error("a fault of ours"));
    await run(new ServiceError("unavailable", "Cannot reach the database at the moment. Try again"));
    expect(stored).toEqual(["broken", "lost"]);
  });

  it("interrupts the runs with all given keys, and resolves when their outcomes are stored", async () => {
    const { runner, stored, start } = setUp();
    const one = start({ worker_id: "w", session_key: "local:1" });
    const other = start({ worker_id: "w", session_key: "local:2" });
    expect(runner.has({ worker_id: "w", session_key: "local:2" })).toBe(true);
    expect(runner.has({ worker_id: "v", session_key: "local:2" })).toBe(false);
    await runner.interrupt({ session_key: "local:1", worker_id: "w" }, "cancelled");
    expect(stored).toEqual([["ended", "cancelled"]]);
    await one;
    expect(runner.running).toMatchObject([{ session_key: "local:2" }]);
    await runner.stopAll();
    await other;
    expect(stored[1]).toEqual(["ended", "shutdown"]);
    expect(runner.running).toEqual([]);
  });

  it("interrupting an unknown run resolves immediately", async () => {
    const { runner } = setUp();
    await runner.interrupt({ execution_id: createId() }, "cancelled");
  });

  it("ends only the run over its time limit, as late", async () => {
    const { clock, runner, stored, start } = setUp();
    const late = start({}, 1_000);
    void start();
    await passing(clock, 999);
    expect(stored).toEqual([]);
    await passing(clock, 1);
    await late;
    expect(stored).toEqual([["ended", "late"]]);
    expect(runner.running).toHaveLength(1);
    await runner.stopAll();
  });

  it("keeps the first reason", async () => {
    const { runner, stored, start } = setUp();
    const run = start({ message_id: "m" });
    void runner.interrupt({ message_id: "m" }, "cancelled");
    await runner.stopAll();
    await run;
    expect(stored).toEqual([["ended", "cancelled"]]);
  });

  it("stores an outcome for throwing work, and retries storing it", async () => {
    const { clock, runner } = setUp();
    let tries = 0;
    const stored: string[] = [];
    const run = runner.start({
      identity: identity(),
      work: () => Promise.reject(new Error("no disk")),
      broken: "broken",
      store(outcome) {
        if (++tries < 3) throw new Error("no database");
        stored.push(outcome);
        return Promise.resolve();
      },
    });
    await passing(clock, 100);
    await passing(clock, 200);
    await run;
    expect([tries, stored, runner.running]).toEqual([3, ["broken"], []]);
  });

  it("stops retrying when nothing can be stored any more", async () => {
    const { runner } = setUp(() => true);
    await runner.start({
      identity: identity(),
      work: () => Promise.resolve("done"),
      broken: "broken",
      store: () => Promise.reject(new Error("no database")),
    });
    expect(runner.running).toEqual([]);
  });
});
