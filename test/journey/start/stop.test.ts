import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";
import { checkAtRest } from "../../torture/checker.ts";

vi.setConfig({ testTimeout: 180_000 });

const UPLOADS = 20;

it(`${UPLOADS} uploads during SIGTERM are stored whole or refused, never half a file [SHD-5]`, async () => {
  await using world = await World.serve();
  const { server, api, dataDir } = world;
  const { id } = await api.call("POST /api/local/sessions");
  const data = new Uint8Array(8_000_000).fill(7);
  const sending = Array.from({ length: UPLOADS }, async (_, i) => {
    const form = new FormData();
    form.append("file", new Blob([data]), `f${i}.bin`);
    const headers = { authorization: `Bearer ${api.token}` };
    const response = await fetch(`${server.url}/api/local/sessions/${id}/media`, {
      method: "POST",
      headers,
      body: form,
    })
      .catch(() => null);
    return response === null
      ? null
      : { status: response.status, body: await response.json().catch(() => null) };
  });
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  const answers = await Promise.all(sending);
  const stored: string[] = [];
  for (const answer of answers) {
    if (answer === null) continue;
    expect([200, 503]).toContain(answer.status);
    if (answer.status === 200) stored.push(answer.body.path);
  }
  for (const path of stored) expect((await Deno.stat(path)).size).toBe(data.length);
  await world.restart();
  await world.server.end("SIGTERM");
  expect(await checkAtRest({ dataDir, uploads: stored, maxAttempts: 3 })).toEqual([]);
});

it("new work during an orderly stop is refused, and not logged as an error", async () => {
  await using world = await World.serve();
  const { server, api } = world;
  const { id } = await api.call("POST /api/workers", { name: "Ada" });
  const task = { message_id: "m", worker_id: id, instruction: "sleep 60", type: "immediate" };
  await api.call("POST /api/tasks", task);
  await waitUntil(
    "the run has started",
    async () => (await api.call("GET /api/executions"))[0]?.status === "running",
  );
  server.child.kill("SIGTERM");
  await waitUntil(
    "the server is stopping",
    async () => (await api.send("POST /api/tasks", task)).status === 503,
  );
  expect((await api.send("GET /api/executions")).status).toBe(200);
  expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(server.stderr).not.toMatch(/"level":"error"|\berror\b|at file:/i);
});
