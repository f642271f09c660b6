import { describe, expect, it } from "vitest";
import { FAKE_AGENT, readLedger } from "../harness/fakes/agents.ts";
import {
  createRemoteWorker,
  createTask,
  formatLedgerEngine,
  startRunner,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { runScenario } from "../harness/model/scenario.ts";
import { waitUntil } from "../harness/wait.ts";

/** Steps of a remote run at which the service is killed. */
const POINTS = [
  "claim.post",
  "pid.recorded",
  "log.append",
  "outcome.pre-commit",
  "outcome.post-commit",
] as const;

describe("a kill of the service during a remote run [RUN-3]", () => {
  it.each(POINTS)(
    "at %s: the run continues, and is stored once",
    (point) =>
      runScenario<{ worker: string; task: string }>({
        keepsPort: true,
        rounds: 1,
        fault: { kind: "point", point, passage: 1 },
        setup: async (world) => {
          const { api, server: { url } } = world;
          const { token } = await api.call("POST /api/runners", { name: "r1", labels: ["x"] });
          const config = formatLedgerEngine(FAKE_AGENT, world.ledger);
          world.use(await startRunner({ token, url, root: world.path("r1"), config }));
          await waitUntilOnline(api, "r1");
          return { worker: await createRemoteWorker(api, "fake"), task: "" };
        },
        action: async ({ api }, state) => {
          await waitUntilOnline(api, "r1");
          // The run is long enough for its start and first output to reach the service.
          state.task = await createTask(api, state.worker, "sleep 1").catch(() => "");
        },
        check: async ({ api, ledger }, { worker, task }) => {
          const status = async () => (await api.call(`GET /api/tasks?worker_id=${worker}`))[0]?.status;
          await waitUntil("the run ends", async () => await status() === "completed");
          const executions = await api.call(`GET /api/executions?worker_id=${worker}`);
          expect(executions).toMatchObject([{ status: "completed", attempt: 1, result: "slept 1" }]);
          if (task !== "") expect(executions[0].task_id).toBe(task);
          expect((await readLedger(ledger)).map(({ word }) => word)).toEqual(["start", "end"]);
          const log = await api.text(`/api/executions/${executions[0].id}/logs`);
          expect(log.match(/starts in/g)).toHaveLength(1);
          expect(log.match(/slept 1/g)).toHaveLength(1);
          expect(log).toContain("[completed]");
        },
      }),
    300_000,
  );
});
