import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { FaultPoint } from "../../src/base/fault_point.ts";
import { endJob, readLines, writeLauncher } from "../harness/service/launcher.ts";
import { createRemoteWorker, createTask } from "../harness/service/runner.ts";
import { runScenario } from "../harness/model/scenario.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";

/** Steps between a task and the end of its launch at which the service is killed. */
const POINTS: FaultPoint[] = [
  "launch.stored",
  "launch.starting",
  "launch.printed",
  "launch.launched",
  "launch.claimed",
  "outcome.post-commit",
  "launch.ended",
];
/** Kills at each step. */
const ROUNDS = Number(Deno.env.get("SVC_TEST_FAULT_SEEDS") ?? 1);

describe("a kill of the service between a task and the end of its job [LCH-1]", () => {
  it.each(POINTS)("at %s: the task runs once, and its launch ends", async (point) => {
    await using folder = await createTempDir();
    const ledger = join(folder.path, "ledger");
    try {
      await runScenario<{ worker: string }>({
        keepsPort: true,
        rounds: ROUNDS,
        env: {
          SVC_ENGINES__SH__KIND: "command",
          SVC_ENGINES__SH__COMMAND: "/bin/sh",
          SVC_LAUNCHERS__GPU__LABELS: "x",
          SVC_LAUNCHERS__GPU__COMMAND: await writeLauncher(folder.path),
          SVC_LAUNCHERS__GPU__START_TIMEOUT: "10s",
        },
        fault: { kind: "point", point, passage: 1 },
        setup: async ({ api }) => ({ worker: await createRemoteWorker(api, "sh", { home: "none" }) }),
        action: async ({ api }, { worker }, round) => {
          await createTask(api, worker, `echo ${round} >>${ledger}; sleep 1; echo done`).catch(() => "");
        },
        restarted: async ({ api }, { worker }) => {
          const list = () => api.call(`GET /api/tasks?worker_id=${worker}`);
          const isDone = async () =>
            (await list()).every(({ status }: { status: string }) => status === "completed");
          await waitUntil("its task ends", isDone).catch(async (error) => {
            throw new Error(`${error.message}: ${JSON.stringify(await list())}`);
          });
          const isEnded = async () => {
            const [{ open, running }] = await api.call("GET /api/launchers");
            return open + running === 0;
          };
          await waitUntil("its launch ends", isEnded);
        },
        check: async ({ api }, { worker }) => {
          const tasks = await api.call(`GET /api/tasks?worker_id=${worker}&page_size=100`);
          expect(tasks.map(({ attempt, run_count }: Record<string, number>) => [attempt, run_count])).toEqual(
            tasks.map(() => [1, 1]),
          );
          expect((await readLines(ledger)).map(Number)).toEqual(
            Array.from({ length: ROUNDS }, (_, round) => round),
          );
          expect(await api.call("GET /api/runners")).toEqual([]);
        },
      });
    } finally {
      for (const pid of await readLines(join(folder.path, "jobs"))) endJob(Number(pid));
    }
  }, 120_000 * ROUNDS);
});
