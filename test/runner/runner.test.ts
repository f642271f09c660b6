import { join } from "node:path";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import {
  createRemoteWorker,
  startRunner,
  waitUntilCompleted,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const ENGINES = `engines:
  default: fake
  fake: { kind: command, command: ${FAKE_AGENT} }
`;

it("a worker with labels runs on the matching runner, and the service has its outcome and log (contract 18)", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "mac1", labels: ["macos", "gpu"] });
  await using runner = await startRunner({
    token,
    url: app.url,
    root: join(app.dataDir, "r1"),
    config: ENGINES,
  });
  await waitUntilOnline(app, "mac1");
  for (const engine of ["echo", "fake"]) {
    const worker = await app.call("POST /api/workers", { name: `on ${engine}`, engine, runs_on: ["gpu"] });
    const task = await app.call("POST /api/tasks", {
      worker_id: worker.id,
      message_id: "m",
      type: "immediate",
      instruction: "say hello",
    });
    await waitUntilCompleted(app, task.id);
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

it("a runner downloads files of a message, and its agent uploads one (contract 18)", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const root = join(app.dataDir, "r1");
  await using _runner = await startRunner({ token, url: app.url, root, config: ENGINES });
  await waitUntilOnline(app, "r1");
  const worker = await createRemoteWorker(app, "fake");
  const session = await app.call("POST /api/local/sessions", { worker_id: worker });
  const form = new FormData();
  form.set("file", new File(["what is in it"], "note.txt"));
  const response = await fetch(`${app.url}/api/local/sessions/${session.id}/media`, {
    method: "POST",
    headers: { authorization: `Bearer ${await app.token()}` },
    body: form,
  });
  const media = await response.json();
  const send = (content: string, more: object = {}) =>
    app.call(`POST /api/local/sessions/${session.id}/messages`, { content, ...more });
  const replies = async () =>
    (await app.call(`GET /api/local/sessions/${session.id}/messages`)).filter(({ role }: { role: string }) =>
      role === "bee"
    );
  await send(`svc version > /dev/null; cat "${root}"/files/*/*`, { media_path: media.path });
  await waitUntil("it replies", async () => (await replies()).length === 1);
  const [first] = await app.call(`GET /api/executions?worker_id=${worker}`);
  expect(await app.call(`GET /api/executions/${first.id}/logs`)).toContain("what is in it");
  expect((await replies())[0].content).toBe("what is in it");
  // An agent on the runner calls the service with its own rights and uploads a file.
  await send("svc ctl message send --message-id $SVC_MESSAGE_ID --media-path $SVC_CONTEXT_FILE");
  const sent = async () =>
    (await replies()).find((reply: { media: { name: string } | null }) => reply.media !== null);
  await waitUntil("a file comes", async () => await sent() !== undefined, 30_000);
  expect((await sent()).media.name).toContain("context.json");
  await send("svc ctl whoami");
  await waitUntil(
    "it says who it is",
    async () => JSON.stringify(await replies()).includes(`worker:${worker}`),
    30_000,
  );
});
