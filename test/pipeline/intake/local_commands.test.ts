import { expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";
import { ctl } from "../../harness/terminal.ts";

const open = () => openApp({ config: { engines: buildFakeEngines() } });

it("/stop in the local chat ends the work of its conversation, and no other (contract 10.7)", async () => {
  await using app = await open();
  const run = await startRun(app);
  const other = await startRun(app, [], "Other");
  const path = `/api/local/sessions/${run.sessionId}/messages`;
  const { message_id } = await app.call(`POST ${path}`, { content: "/stop" });
  const trace = await app.call(`GET /api/messages/${message_id}/trace`);
  expect(trace.tasks).toEqual([]);
  await expect.poll(async () => (await app.call(`GET /api/executions/${run.executionId}`)).status, {
    timeout: 60_000,
  }).toBe("failed");
  expect(await app.call(`GET /api/tasks/${run.taskId}`)).toMatchObject({
    status: "cancelled",
    reason: "stopped by user:admin",
  });
  const said = await app.call(`GET ${path}`) as { content: string }[];
  expect(said.map(({ content }) => content)).toContain(
    "Stopped 1 running and 0 waiting tasks. Schedules continue.",
  );
  expect((await app.call(`GET /api/executions/${other.executionId}`)).status).toBe("running");
  await app.call(`POST /api/executions/${other.executionId}/cancel`, {});
  await app.settle();
});

it("/stop of a run is a message to the worker, and ends nothing (contract 10.7)", async () => {
  await using app = await open();
  const run = await startRun(app, ["*:*"]);
  const path = `/api/local/sessions/${run.sessionId}/messages`;
  const { body } = await app.send(`POST ${path}`, { content: "/stop" }, run.headers);
  const readTrace = () => app.call(`GET /api/messages/${body.message_id}/trace`);
  await expect.poll(async () => (await readTrace()).tasks, { timeout: 60_000 }).toHaveLength(1);
  expect((await app.call(`GET /api/executions/${run.executionId}`)).status).toBe("running");
  await app.call(`POST /api/local/sessions/${run.sessionId}/messages`, { content: "/stop" });
  await app.settle();
});

it("svc ctl chat gives a command no mention, and prints its reply (contract 10.7)", async () => {
  await using app = await open();
  await app.call("POST /api/workers", { name: "Ada" });
  const chat = (...args: string[]) => ctl(app, ["chat", "--worker", "Ada", ...args]);
  expect((await chat("/status")).out).toBe("Nothing is running or scheduled.\n");
  expect((await chat("/help")).out).toContain("/stop: cancel the work in this conversation");
  expect(await app.db.readValue("select count(*) from task")).toBe(0);
});
