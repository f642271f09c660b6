import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { PASSWORD, PASSWORD_HASH } from "../../harness/service/app.ts";
import { openClient, waitUntilQuiet } from "../../harness/service/client.ts";
import { createTempDir, startServer, SVC } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { checkAtRest } from "../../torture/checker.ts";

vi.setConfig({ testTimeout: 180_000 });

const ENV = { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH };
const UPLOADS = 20;

it(`${UPLOADS} uploads during SIGTERM are stored whole or refused, never half a file [SHD-5]`, async () => {
  await using folder = await createTempDir();
  const dataDir = folder.path;
  const server = await startServer({ dataDir, env: ENV });
  const api = await openClient(server.url, PASSWORD);
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
  const again = await startServer({ dataDir, env: ENV });
  await again.end("SIGTERM");
  expect(await checkAtRest({ dataDir, uploads: stored, maxAttempts: 3 })).toEqual([]);
});

it("new work during an orderly stop is refused, and not logged as an error", async () => {
  await using folder = await createTempDir();
  const env = {
    ...ENV,
    SVC_ENGINES__PROG__KIND: "command",
    SVC_ENGINES__PROG__COMMAND: "sleep",
    SVC_ENGINES__PROG__ARGS: "60",
  };
  await using server = await startServer({ dataDir: folder.path, env });
  const api = await openClient(server.url, PASSWORD);
  const { id } = await api.call("POST /api/workers", { name: "Ada", engine: "prog" });
  const task = { message_id: "m", worker_id: id, instruction: "x", type: "immediate" };
  await api.call("POST /api/tasks", task);
  await waitUntil("it runs", async () => (await api.call("GET /api/executions"))[0]?.status === "running");
  server.child.kill("SIGTERM");
  await waitUntil("it is stopping", async () => (await api.send("POST /api/tasks", task)).status === 503);
  expect((await api.send("GET /api/executions")).status).toBe(200);
  expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(server.stderr).not.toMatch(/"level":"error"|\berror\b|at file:/i);
});

it("files and directories are readable by the service's user only under any umask [SEC-7]", async () => {
  await using folder = await createTempDir();
  const dataDir = join(folder.path, "data");
  const program = ["sh", "-c", 'umask 000; exec "$@"', "sh", ...SVC];
  await using server = await startServer({ dataDir, env: ENV, program, cwd: folder.path });
  const api = await openClient(server.url, PASSWORD);
  const { id: worker } = await api.call("POST /api/workers", { name: "Ada" });
  const { id } = await api.call("POST /api/local/sessions", { worker_id: worker });
  const form = new FormData();
  form.append("file", new Blob(["text"]), "note.txt");
  const { path } = await api.upload(`/api/local/sessions/${id}/media`, form);
  await api.call(`POST /api/local/sessions/${id}/messages`, { content: "hello", media_path: path });
  await waitUntilQuiet(api);
  const open: string[] = [];
  for await (const found of walk(dataDir)) {
    // The program on the agents' PATH holds no secret.
    const allowed = found.path.endsWith("/bin/svc") ? 0o755 : found.isDirectory ? 0o700 : 0o600;
    if ((found.mode & 0o777 & ~allowed) !== 0) open.push(`${found.path} ${(found.mode & 0o777).toString(8)}`);
  }
  expect(open).toEqual([]);
  await server.end("SIGTERM");
});

async function* walk(folder: string): AsyncGenerator<{ path: string; mode: number; isDirectory: boolean }> {
  const { mode } = await Deno.stat(folder);
  yield { path: folder, mode: mode ?? 0, isDirectory: true };
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* walk(path);
    else if (entry.isFile) yield { path, mode: (await Deno.stat(path)).mode ?? 0, isDirectory: false };
  }
}
