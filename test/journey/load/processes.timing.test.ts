import { expect, it, vi } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { readLedger } from "../../harness/fakes/agents.ts";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";
import { createWorkers, readRunMarks } from "../../harness/model/workload.ts";
import { createTask } from "../../harness/service/runner.ts";

// The long run: SVC_TEST_AGENT_KILLS=50 SVC_TEST_RUNS=1000.
const KILLS = Number(Deno.env.get("SVC_TEST_AGENT_KILLS") ?? 1);
const AGENTS = 8;

vi.setConfig({ testTimeout: 60_000 + KILLS * 60_000 });

it(`${KILLS} kills of the server with ${AGENTS} stubborn agents: all are dead before their task is claimed again [CHD-3]`, async () => {
  await using world = await World.serve({
    env: { SVC_LIMITS__MAX_CONCURRENT_RUNS: String(AGENTS), SVC_LIMITS__STOP_GRACE: "100ms" },
  });
  const { dataDir, ledger } = world;
  const workers = await createWorkers(world.api, AGENTS);
  for (let kill = 1; kill <= KILLS; kill++) {
    const tasks = await Promise.all(workers.map((worker) => createTask(world.api, worker, "tick")));
    const working = async () => {
      const lines = await readLedger(ledger);
      return tasks.every((task) => lines.some((line) => line.task === task && line.word === "tick"));
    };
    await waitUntil("all agents work", working);
    await world.server.end("SIGKILL");
    const killedAt = Date.now();
    const runs = await readRunMarks(dataDir);
    await waitUntil(
      "the agents end with their server",
      async () => (await findMarked(runs)).length === 0,
      5_000,
    );
    const lastTick = Math.max(...(await readLedger(ledger)).map((line) => line.at));
    expect(lastTick - killedAt).toBeLessThan(5_000);
    await world.start();
    const again = async () => {
      const second = (await readLedger(ledger)).filter((line) => line.word === "start" && line.attempt === 2);
      return tasks.every((task) => second.some((line) => line.task === task));
    };
    await waitUntil("every task is given out again", again);
    await world.api.call("DELETE /api/contexts?session_key=cli:script");
  }
  // Every process of a run holds the lock of its task, so a leftover process would appear here.
  expect((await readLedger(ledger)).filter((line) => line.word === "OVERLAP")).toEqual([]);
  expect(await world.server.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(await findMarked(await readRunMarks(dataDir))).toEqual([]);
});
