import { join } from "node:path";
import { expect, it } from "vitest";
import { openApp } from "../harness/app.ts";
import { FAKE_AGENT } from "../harness/agents.ts";
import { online, startRunner } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";

const ENGINES = `engines:
  default: fake
  fake: { kind: command, command: ${FAKE_AGENT} }
`;

it("a worker with labels runs on the runner that has them, and its outcome and log are there (contract 18)", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "mac1", labels: ["macos", "gpu"] });
  await using runner = await startRunner({
    token,
    url: app.url,
    root: join(app.dataDir, "r1"),
    config: ENGINES,
  });
  await online(app, "mac1");
  for (const engine of ["echo", "fake"]) {
    const worker = await app.call("POST /api/workers", { name: `on ${engine}`, engine, runs_on: ["gpu"] });
    const task = await app.call("POST /api/tasks", {
      worker_id: worker.id,
      message_id: "m",
      type: "immediate",
      instruction: "say hello",
    });
    await eventually(
      "it ends",
      async () => (await app.call(`GET /api/tasks/${task.id}`)).status === "completed",
    );
    const [execution] = await app.call(`GET /api/executions?worker_id=${worker.id}`);
    expect(execution).toMatchObject({ status: "completed", attempt: 1, engine });
    expect(execution.started_at).toBeGreaterThanOrEqual(execution.created_at);
    const log = await app.call(`GET /api/executions/${execution.id}/logs`);
    expect(log).toContain(join(runner.root, "workers", worker.id));
    expect(log).toContain("[completed]");
    expect((await app.call(`GET /api/workers/${worker.id}`)).home).toBe("mac1");
  }
  expect(runner.stderr).not.toMatch(/error/i);
});
