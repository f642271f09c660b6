import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";
import { createWorkers, readRows } from "../../harness/model/workload.ts";

// The long run: SVC_TEST_COUNTDOWNS=1000.
const COUNT = Number(Deno.env.get("SVC_TEST_COUNTDOWNS") ?? 100);
const KILLS = Math.max(2, Math.floor(COUNT / 100));
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const SPAN_MS = 3_000 + COUNT * 7;

vi.setConfig({ testTimeout: SPAN_MS + 90_000 });

it(`${COUNT} countdowns with ${KILLS} kills at their due time: none is early, and none is later than a second after the server is ready (seed ${SEED}) [DSP-7]`, async () => {
  await using world = await World.serve({
    seed: SEED,
    env: { SVC_ENGINES__DEFAULT: "echo", SVC_LIMITS__MAX_CONCURRENT_RUNS: "20" },
  });
  const { api, chance } = world;
  const workers = await createWorkers(api, 20);
  const from = Date.now() + 5_500 + COUNT * 3;
  await Promise.all(Array.from({ length: COUNT }, (_, index) =>
    api.call("POST /api/tasks", {
      message_id: "countdowns",
      worker_id: workers[index % workers.length],
      instruction: String(index),
      type: "countdown",
      scheduled_at: from + Math.floor(chance() * SPAN_MS),
    })));
  const down: [from: number, to: number][] = [];
  for (let kill = 1; kill <= KILLS; kill++) {
    const at = from + SPAN_MS * kill / (KILLS + 1);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - Date.now())));
    await world.server.end("SIGKILL");
    const killedAt = Date.now();
    await world.start();
    down.push([killedAt, Date.now()]);
  }
  await waitUntil("all are done", async () => {
    const { tasks } = await world.api.call("GET /api/system/overview");
    return tasks.completed === COUNT;
  }, SPAN_MS + 30_000);
  await world.server.end("SIGTERM");

  const rows = await readRows<{ scheduled_at: number; first: number; runs: number }>(
    world.dataDir,
    `select scheduled_at, min(execution.created_at) as first, count(*) as runs
    from task
    join execution on execution.task_id = task.id
    group by task.id`,
  );
  expect(rows).toHaveLength(COUNT);
  expect(rows.filter((row) => row.first < row.scheduled_at)).toEqual([]);
  const lateMs = rows.map((row) => {
    const outage = down.find(([begin, end]) => row.scheduled_at >= begin - 100 && row.scheduled_at <= end);
    // A server that was killed within its first second could not start it.
    const ready = down.reduce(
      (end, [from, to]) => end > 0 && from <= end + 1_000 ? Math.max(end, to) : end,
      outage?.[1] ?? 0,
    );
    return row.first - Math.max(row.scheduled_at, ready);
  }).sort((a, b) => a - b);
  expect(lateMs[Math.floor(COUNT * 0.99) - 1]).toBeLessThanOrEqual(1_000);
});
