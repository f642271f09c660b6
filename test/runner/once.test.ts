import { join } from "node:path";
import { expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { createRemoteWorker, createTask, startRunnerOnce } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const ENGINES = "max_runs: 8\nengines:\n  default: sh\n  sh: { kind: command, command: sh }\n";

function open(): Promise<App> {
  return openApp({ config: { engines: { sh: { kind: "command", command: "sh" } } } });
}

/** Lists what is below a folder. */
function list(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name);
}

async function prepare(app: App) {
  const { token } = await app.call("POST /api/runners", { name: "once", labels: ["x"] });
  const worker = await createRemoteWorker(app, "sh", { home: "none" });
  return { token, worker, url: app.url, config: ENGINES };
}

it("svc runner --once does one run, leaves nothing behind and exits with 0 (contract 33.9)", async () => {
  await using app = await open();
  await using temp = await createTempDir();
  const folder = temp.path;
  const { worker, ...given } = await prepare(app);
  const first = await createTask(
    app,
    worker,
    "env | grep ^SVC_RUNNER_; pwd; echo made > file; svc version >&2",
  );
  const second = await createTask(app, worker, "echo never");
  await using runner = await startRunnerOnce({ folder, ...given });
  expect([await runner.wait(), runner.stderr]).toEqual([0, expect.any(String)]);
  const { execution_id } = await app.call(`GET /api/tasks/${first}`);
  const { status, result } = await app.call(`GET /api/executions/${execution_id}`);
  expect(status).toBe("completed");
  // The launcher's variables are not the agent's.
  expect(result).not.toContain("SVC_RUNNER_");
  expect(result).toContain(`/homes/${execution_id}`);
  expect(await app.call(`GET /api/tasks/${second}`)).toMatchObject({ status: "pending" });
  expect([list(join(folder, "tmp")), list(join(folder, "home"))]).toEqual([[], []]);
});

it("svc runner --once exits with 0 after a run that failed, in a directory below its work_root (contract 33.9)", async () => {
  await using app = await open();
  await using temp = await createTempDir();
  const folder = temp.path;
  const { worker, ...given } = await prepare(app);
  const task = await createTask(app, worker, "exit 3");
  const config = `work_root: ${join(folder, "roots")}\n${given.config}`;
  await using runner = await startRunnerOnce({ folder, ...given, config });
  expect([await runner.wait(), runner.stderr]).toEqual([0, expect.any(String)]);
  expect(await app.call(`GET /api/tasks/${task}`)).toMatchObject({ status: "failed" });
  expect([list(join(folder, "tmp")), list(join(folder, "roots"))]).toEqual([[], []]);
});

it("svc runner --once ends its run at SIGTERM, and the task returns to the queue (contract 33.9)", async () => {
  await using app = await open();
  await using temp = await createTempDir();
  const folder = temp.path;
  const { worker, ...given } = await prepare(app);
  const task = await createTask(app, worker, "echo here; sleep 600");
  await using runner = await startRunnerOnce({ folder, ...given });
  await waitUntil("it runs", async () => {
    const { execution_id } = await app.call(`GET /api/tasks/${task}`);
    return execution_id !== null && execution_id !== "" &&
      (await app.call(`GET /api/executions/${execution_id}/logs`)).includes("here\n");
  });
  expect(await runner.end("SIGTERM")).toBe(0);
  expect(await app.call(`GET /api/tasks/${task}`)).toMatchObject({ status: "pending", attempt: 0 });
  expect(list(join(folder, "tmp"))).toEqual([]);
});

it("svc runner --once that comes too late says so and exits with 0 (contract 33.9)", async () => {
  await using app = await open();
  await using temp = await createTempDir();
  const folder = temp.path;
  const { worker: _worker, ...given } = await prepare(app);
  await app.call("DELETE /api/runners/once");
  await using runner = await startRunnerOnce({ folder, ...given });
  expect(await runner.wait()).toBe(0);
  expect(runner.stderr).toMatch(/Too late: the service no longer accepts the token/);
  expect(list(join(folder, "tmp"))).toEqual([]);
});

it("svc runner names the variables when an address or a token is missing (contract 33.9)", async () => {
  await using temp = await createTempDir();
  await using runner = await startRunnerOnce({ folder: temp.path, token: "", url: "http://127.0.0.1:9" });
  expect([await runner.wait(), runner.stderr]).toEqual([2, expect.stringContaining("the file is empty")]);
});
