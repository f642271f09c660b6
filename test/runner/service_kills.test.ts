import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FAKE_AGENT, readLedger } from "../harness/agents.ts";
import { type Client, client, PASS_HASH } from "../harness/client.ts";
import { startServer } from "../harness/process.ts";
import { awayWorker, ledgerEngine, online, startRunner, taskFor } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";

/** Steps of a remote run at which the service is killed. */
const POINTS = ["claim.post", "pid.recorded", "log.append", "outcome.pre-commit", "outcome.post-commit"];

describe("the service is killed in the middle of a remote run [RUN-3]", () => {
  for (const point of POINTS) {
    it(`at ${point}: the run goes on, and is stored once [RUN-3]`, async () => {
      const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
      await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
      const dataDir = join(folder, "data");
      await Deno.mkdir(dataDir, { mode: 0o700 });
      const ledger = join(folder, "ledger");
      const env = { SVC_AUTH__PASSWORD_HASH: PASS_HASH };
      const first = await startServer({ dataDir, env: { ...env, SVC_FAULT: `${point}:1:kill` } });
      const api = await client(first.url);
      const { token } = await api.call("POST /api/runners", { name: "r1", labels: ["x"] });
      const config = ledgerEngine(FAKE_AGENT, ledger);
      await using _runner = await startRunner({ token, url: first.url, root: join(folder, "r1"), config });
      await online(api, "r1");
      const worker = await awayWorker(api, "fake");
      // So long that its start and the beginning of its log are told while it runs.
      const task = await taskFor(api, worker, "sleep 1").catch(() => "");
      await first.child.status;
      expect(first.stderr).toContain(`SVC_FAULT fired: ${point}`);

      const port = new URL(first.url).port;
      await using again = await startServer({ dataDir, env: { ...env, SVC_SERVER__PORT: port } });
      const after: Client = await client(again.url);
      const ended = async () => (await after.call(`GET /api/tasks?worker_id=${worker}`))[0]?.status;
      await eventually("it ends", async () => await ended() === "completed", 60_000);
      const executions = await after.call(`GET /api/executions?worker_id=${worker}`);
      expect(executions).toMatchObject([{ status: "completed", attempt: 1, result: "slept 1" }]);
      if (task !== "") expect(executions[0].task_id).toBe(task);
      expect((await readLedger(ledger)).map(({ word }) => word)).toEqual(["start", "end"]);
      const log = await after.text(`/api/executions/${executions[0].id}/logs`);
      expect(log.match(/starts in/g)).toHaveLength(1);
      expect(log.match(/slept 1/g)).toHaveLength(1);
      expect(log).toContain("[completed]");
    }, 300_000);
  }
});
