import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { ctl, splitWords } from "../harness/terminal.ts";
import { createSchedule } from "../harness/model/workload.ts";

// Succeeds once and fails afterwards.
const ONCE = {
  default: "once",
  once: { kind: "command", command: "sh", args: ["-c", "test ! -e ran || exit 3; touch ran; echo first"] },
};

async function schedule(app: App, instruction: string): Promise<{ id: string; worker: string }> {
  const { id: worker } = await app.call("POST /api/workers", { name: "Ada" });
  const id = await createSchedule(app, worker, instruction);
  return { id, worker };
}

describe("runs of a schedule by their numbers (contract 8.9)", () => {
  it("task wait --run reports the outcome of its run, even during a later run", async () => {
    await using app = await openApp({ config: { engines: ONCE } });
    const { id } = await schedule(app, "go");
    expect(await ctl(app, `task run --wait ${id}`)).toMatchObject({
      code: 0,
      out: expect.stringContaining("last_status\tcompleted\n"),
      err: `accepted ${id} run 1\n`,
    });
    const second = await ctl(app, `task run --wait ${id}`);
    expect([second.code, second.err]).toEqual([8, expect.stringContaining(`run 2 of task ${id} failed: `)]);
    const first = await ctl(app, `task wait ${id} --run 1`);
    expect([first.code, first.err]).toEqual([0, ""]);
    expect(first.out).toContain("last_status\tcompleted\n");
    expect((await ctl(app, `task wait ${id} --run 2`)).code).toBe(8);
    expect((await ctl(app, `task wait ${id} --run 9 --timeout 100ms`)).code).toBe(124);
    expect((await ctl(app, `task wait ${id} --run 0`)).code).toBe(2);
    const runs = await app.call("GET /api/executions");
    expect(runs.map(({ run_no }: { run_no: number }) => run_no)).toEqual([2, 1]);
    // Other tasks cannot replace the outcome, and cancelling the schedule does not undo it.
    await ctl(app, `task cancel ${id}`);
    expect((await ctl(app, `task wait ${id} --run 1`)).code).toBe(0);
    expect((await ctl(app, `task wait ${id}`)).code).toBe(8);
  });

  it("a second request for a pending run returns the pending run", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id, worker } = await schedule(app, "ok");
    await app.call(`PUT /api/workers/${worker}`, { paused: true });
    const asked = await Promise.all([1, 2, 3].map(() => app.send(`POST /api/tasks/${id}/run`, {})));
    expect(asked.map(({ status, body }) => [status, body.status, body.run_no])).toEqual(
      [1, 2, 3].map(() => [200, "pending", 1]),
    );
    await app.call(`PUT /api/workers/${worker}`, { paused: false });
    await app.settle();
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({ run_count: 1, run_no: 1 });
  });

  it.each(["task", "schedule"])(
    "%s run --wait starts after the active run; without --wait it is a conflict",
    async (group) => {
      await using app = await openApp({ config: { engines: buildFakeEngines() } });
      const { id } = await schedule(app, "sleep 1");
      const first = ctl(app, [group, "run", "--wait", id]);
      await app.until("execution.started");
      expect((await ctl(app, [group, "run", id])).code).toBe(5);
      const second = await ctl(app, [group, "run", "--wait", id]);
      expect([second.code, second.err]).toEqual([0, expect.stringContaining(`accepted ${id} run 2\n`)]);
      expect((await first).code).toBe(0);
      expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({ run_count: 2, run_no: 2 });
    },
  );

  it("schedule run --wait returns the outcome of its run as the exit code", async () => {
    await using app = await openApp({ config: { engines: ONCE } });
    const { id } = await schedule(app, "go");
    const first = await ctl(app, `schedule run --wait ${id}`);
    expect([first.code, first.err]).toEqual([0, `accepted ${id} run 1\n`]);
    expect(first.out).toContain("last_status\tcompleted\n");
    const second = await ctl(app, `schedule run --wait ${id}`);
    expect([second.code, second.err]).toEqual([8, expect.stringContaining(`run 2 of task ${id} failed: `)]);
    const late = await ctl(app, `schedule run --timeout 1s ${id}`);
    expect([late.code, late.err]).toEqual([2, "svc: --timeout requires --wait\n"]);
    await ctl(app, `schedule delete ${id}`);
    expect((await ctl(app, `schedule run --wait ${id}`)).code).toBe(5);
  });

  it("schedule run --wait stops waiting at the timeout, and the run continues", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await schedule(app, "sleep 2");
    const called = await ctl(app, `schedule run --wait --timeout 200ms ${id}`);
    expect([called.code, called.err]).toEqual([124, expect.stringContaining(`task ${id} is still `)]);
    await app.settle();
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({ last_status: "completed" });
  });

  it("a run that the gate skips is a success, even during a later run; a failed gate is not (contract 15)", async () => {
    await using app = await openApp({ config: { engines: { default: "echo" } } });
    await ctl(app, "worker create -n Ada");
    const gate = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; exit $n";
    const flags = [
      ...splitWords("--worker Ada --instruction go --cron '0 0 1 1 *' --gate-timeout 9s"),
      "--gate",
      gate,
    ];
    const made = await ctl(app, ["schedule", "create", ...flags, "--overlap", "queue", "-q"]);
    const id = made.out.trim();
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({
      overlap: "queue",
      gate: { command: ["sh", "-c", gate], timeout_ms: 9_000 },
    });
    const first = await ctl(app, `schedule run --wait ${id}`);
    expect([first.code, first.out]).toEqual([0, expect.stringContaining("last_status\tcompleted\n")]);
    const second = await ctl(app, `task run --wait ${id}`);
    expect([second.code, second.out]).toEqual([0, expect.stringContaining("execution_id\t\n")]);
    expect(second.out).toContain("reason\tits gate skipped the latest run\n");
    const third = await ctl(app, `schedule run --wait ${id}`);
    expect([third.code, third.err]).toEqual([8, expect.stringContaining("failed: gate_failed: exit code 2")]);
    expect((await ctl(app, `task wait ${id} --run 1`)).code).toBe(0);
    const again = await ctl(app, `task wait ${id} --run 2`);
    expect([again.code, again.out]).toEqual([0, expect.stringContaining("last_status\t\n")]);
    expect((await ctl(app, `task wait ${id} --run 3`)).code).toBe(8);
    await ctl(app, `schedule update ${id} --gate ''`);
    expect((await app.call(`GET /api/tasks/${id}`)).gate).toBeNull();
  });

  it("worker create and update take a check (contract 13)", async () => {
    await using app = await openApp({ config: { engines: { default: "echo" } } });
    const flags = ["--verify", '["make", "test"]', "--verify-timeout", "5s", "--verify-attempts", "1"];
    const made = await ctl(app, ["worker", "create", "-n", "Ada", ...flags, "-q"]);
    const id = made.out.trim();
    expect((await app.call(`GET /api/workers/${id}`)).verify).toEqual({
      ...{ command: ["make", "test"], timeout_ms: 5_000, attempts: 1 },
    });
    expect((await ctl(app, `worker update ${id} --verify-attempts 1`)).code).toBe(2);
    await ctl(app, "worker update Ada --verify ''");
    expect((await app.call(`GET /api/workers/${id}`)).verify).toBeNull();
  });
});
