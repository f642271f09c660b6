import { expect, it } from "vitest";
import { createTask, waitUntilCompleted } from "../harness/service/runner.ts";
import { openLaunchWorld, writeLauncher } from "../harness/service/launcher.ts";

it("a launcher starts one runner for one run, which ends with it [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: { command: [await writeLauncher(folder)] },
  }));
  const { app } = world;
  const task = await createTask(app, await world.createWorker(), "echo hello");
  await waitUntilCompleted(app, task);
  const [execution] = await app.call(`GET /api/executions`);
  expect(execution).toMatchObject({ status: "completed", result: "hello", attempt: 1 });
  expect(await world.read("calls")).toEqual([execution.id]);
  expect(await app.call("GET /api/runners")).toEqual([]);
});
