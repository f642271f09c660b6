import { expect, it, vi } from "vitest";
import type { Client } from "../../harness/service/client.ts";
import { runScenario, type World } from "../../harness/model/scenario.ts";
import { createWorkers, pause } from "../../harness/model/workload.ts";

// CI runs fifty kills and three hundred tasks.
const KILLS = Number(Deno.env.get("SVC_TEST_KILLS") ?? 2);
const TASKS = KILLS * 6;
const WORKERS = 6;
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

interface Tasks {
  workers: string[];
  /** Ids of acknowledged tasks. */
  accepted: Set<string>;
  sent: number;
}

vi.setConfig({ testTimeout: 180_000 + KILLS * 4_000 });

it(`${KILLS} kills at random during ${TASKS} tasks of all types: nothing is lost, doubled or stuck (seed ${SEED}) [DUR-1, DSP-1]`, () =>
  runScenario<Tasks>({
    seed: SEED,
    env: { SVC_LIMITS__MAX_ATTEMPTS: "5" },
    rounds: KILLS,
    fault: { kind: "kill", afterMs: ({ chance }) => 150 + chance() * 700 },
    setup: async ({ api }) => ({
      workers: await createWorkers(api, WORKERS),
      accepted: new Set(),
      sent: 0,
    }),
    action: async ({ api, chance }, tasks, round) => {
      while (tasks.sent < TASKS * (round + 1) / KILLS) {
        const body = buildTask(tasks.workers[tasks.sent % WORKERS] ?? "", chance());
        const headers = { "idempotency-key": `task-${tasks.sent}` };
        // After a lost response the next server gets the same key.
        const task = await api.call("POST /api/tasks", body, headers).catch(() => null);
        if (task === null) return;
        tasks.accepted.add(task.id);
        tasks.sent++;
      }
    },
    check: async (world, { workers, accepted }) => {
      await settle(world.api, workers);
      const counts = new Map<string, number>();
      for (const worker of workers) {
        for (const task of await readAll(world.api, `/api/tasks?worker_id=${worker}`)) {
          counts.set(task.id, (counts.get(task.id) ?? 0) + 1);
          if (task.type === "scheduled") {
            expect(task, task.id).toMatchObject({ status: "scheduled", next_run_at: expect.any(Number) });
          } else if (task.type === "countdown" && task.status === "scheduled") {
            expect(task.next_run_at).toBeGreaterThan(Date.now() - 2_000);
          } else expect(["completed", "failed"], JSON.stringify(task)).toContain(task.status);
          if (task.status === "failed") expect(task.reason).toMatch(/server_lost/);
          expect(task.attempt).toBeLessThanOrEqual(5);
        }
      }
      for (const id of accepted) expect(counts.get(id), id).toBe(1);
      expect(counts.size).toBeGreaterThanOrEqual(accepted.size);
      await checkLedger(world, accepted.size);
    },
  }));

async function checkLedger(world: World, accepted: number): Promise<void> {
  const lines = (await Deno.readTextFile(world.ledger)).trim().split("\n");
  expect(lines.filter((line) => line.startsWith("start")).length).toBeGreaterThanOrEqual(accepted / 2);
  expect(lines.filter((line) => line.startsWith("OVERLAP"))).toEqual([]);
}

function buildTask(worker_id: string, dice: number) {
  const base = { message_id: "kills", worker_id, instruction: `sleep ${(dice * 0.4).toFixed(2)}` };
  if (dice < 0.6) return { ...base, type: "immediate" };
  if (dice < 0.85) {
    return { ...base, type: "countdown", scheduled_at: Date.now() + 5_200 + Math.floor(dice * 1_000) };
  }
  return { ...base, type: "scheduled", cron: "* * * * *" };
}

async function readAll(api: Client, path: string) {
  const found = [];
  for (let page = 1;; page++) {
    const rows = await api.call(`GET ${path}&page=${page}&page_size=100`);
    found.push(...rows);
    if (rows.length < 100) return found;
  }
}

/**
 * Waits until no task of these workers is pending, running or due. Schedules of every minute may start at any
 * time.
 */
async function settle(api: Client, workers: string[]): Promise<void> {
  const until = performance.now() + 60_000;
  while (performance.now() < until) {
    let open = 0;
    for (const worker of workers) {
      const { pending, running } = await api.call(`GET /api/workers/${worker}/status`);
      const due = await readAll(api, `/api/tasks?worker_id=${worker}&status=scheduled&type=countdown`);
      open += pending + running + due.length;
    }
    if (open === 0) return;
    await pause(200);
  }
  throw new Error("the tasks did not settle");
}
