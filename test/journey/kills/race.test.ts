import { describe, expect, it, vi } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { createRandom } from "../../harness/model/schedule.ts";

vi.setConfig({ testTimeout: 180_000 });

// The long run: SVC_TEST_CANCELS=1000.
const RACES = Number(Deno.env.get("SVC_TEST_CANCELS") ?? 300);
const AT_ONCE = 20;

describe("cancel races claim [DSP-11]", () => {
  it(`${RACES} times: either cancelled without a run, or run, never both [DSP-11]`, async () => {
    await using app = await openApp({ config: { limits: { max_concurrent_runs: 3 } } });
    const chance = createRandom(7);
    const workers: string[] = [];
    for (let i = 0; i < AT_ONCE; i++) {
      workers.push((await app.call("POST /api/workers", { name: `w${i}` })).id);
    }
    let cancelled = 0;
    for (let round = 0; round < RACES / AT_ONCE; round++) {
      await Promise.all(workers.map(async (worker_id) => {
        const body = { message_id: "race", worker_id, instruction: "x", type: "immediate" };
        const { id } = await app.call("POST /api/tasks", body);
        const waitMs = chance() * 5;
        if (chance() < 0.7) await new Promise((resolve) => setTimeout(resolve, waitMs));
        const { status } = await app.send(`POST /api/tasks/${id}/cancel`);
        expect([200, 409]).toContain(status);
        if (status === 200) cancelled++;
      }));
    }
    await app.settle();
    const rows = await app.db.read<{ status: string; runs: number; n: number }>(
      `select status, runs, count(*) as n
      from (select status, (select count(*) from execution where task_id = task.id) as runs from task)
      group by status, runs
      order by status`,
    );
    expect(rows).toEqual([
      ...(cancelled > 0 ? [{ status: "cancelled", runs: 0, n: cancelled }] : []),
      { status: "completed", runs: 1, n: RACES - cancelled },
    ]);
    expect(cancelled).toBeGreaterThan(10);
    expect(cancelled).toBeLessThan(RACES - 10);
  });

  it("deleting a worker during its tasks leaves nothing behind [DSP-15]", async () => {
    await using app = await openApp();
    const chance = createRandom(8);
    for (let race = 0; race < 100; race++) {
      const { id } = await app.call("POST /api/workers", { name: "w" });
      const made = Promise.all(
        Array.from({ length: 3 }, () =>
          app.send("POST /api/tasks", {
            message_id: "m",
            worker_id: id,
            instruction: "x",
            type: "immediate",
          })),
      );
      await new Promise((resolve) => setTimeout(resolve, chance() * 6));
      expect((await app.send(`DELETE /api/workers/${id}`)).status).toBe(200);
      for (const { status } of await made) expect([201, 400]).toContain(status);
    }
    await app.settle();
    expect(await app.db.read("pragma foreign_key_check")).toEqual([]);
    expect(await app.db.read("select id from task where status in ('pending', 'running', 'scheduled')"))
      .toEqual([]);
    expect(await app.db.read("select id from execution where status in ('pending', 'running')")).toEqual([]);
  });
});
