import { join } from "node:path";
import { expect, it } from "vitest";
import { buildResourceVariables } from "../../src/domain/workers/resources.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import {
  createFakeRunner,
  createRemoteWorker,
  createTask,
  startRunner,
  waitUntilCompleted,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const ENGINES = "max_runs: 8\nengines:\n  default: sh\n  sh: { kind: command, command: sh }\n";

function open(): Promise<App> {
  return openApp({ config: { engines: { sh: { kind: "command", command: "sh" } } } });
}

async function refuse(app: App, route: string, body: object): Promise<string> {
  const { status, body: problem } = await app.send(route, body);
  expect(status).toBe(400);
  return (problem as { detail: string }).detail;
}

it("a worker with home none runs side by side on any runner, in new directories that go with the runs (contract 33.7)", async () => {
  await using app = await open();
  await using temp = await createTempDir();
  const roots: string[] = [];
  const runners: AsyncDisposable[] = [];
  await using stack = new AsyncDisposableStack();
  for (const name of ["r1", "r2"]) {
    const { token } = await app.call("POST /api/runners", { name, labels: ["x"] });
    const root = join(temp.path, name);
    // Left over by a runner that was killed.
    await Deno.mkdir(join(root, "homes", "left"), { recursive: true });
    roots.push(root);
    runners.push(
      stack.use(await startRunner({ token, url: app.url, root, config: ENGINES.replace("8", "2") })),
    );
  }
  const worker = await createRemoteWorker(app, "sh", { home: "none" });
  const flag = join(temp.path, "go");
  const tasks = await Promise.all(
    Array.from(
      { length: 4 },
      () =>
        createTask(
          app,
          worker,
          `pwd; ls -A | wc -l; stat -c %a .; echo x > file; until test -e ${flag}; do sleep 0.05; done`,
        ),
    ),
  );
  await waitUntil("all run", async () => {
    const { running } = await app.call(`GET /api/workers/${worker}/status`);
    return running === 4;
  });
  await Deno.writeTextFile(flag, "");
  const results: string[] = [];
  for (const task of tasks) {
    await waitUntilCompleted(app, task);
    const { execution_id } = await app.call(`GET /api/tasks/${task}`);
    results.push((await app.call(`GET /api/executions/${execution_id}`)).result);
  }
  for (const result of results) expect(result).toMatch(/\/r[12]\/homes\/[-0-9a-f]{36}\n0\n700/);
  expect(new Set(results).size).toBe(4);
  expect(new Set(results.map((result) => /\/(r[12])\//.exec(result)?.[1]))).toEqual(new Set(["r1", "r2"]));
  expect((await app.call(`GET /api/workers/${worker}`)).home).toBe("none");
  await waitUntil(
    "the directories are removed",
    () => roots.every((root) => [...Deno.readDirSync(join(root, "homes"))].length === 0),
  );
});

it("tasks of one conversation of a worker with home none run one after another (contract 33.7)", async () => {
  await using app = await open();
  const runner = await createFakeRunner(app);
  const worker = await createRemoteWorker(app, "echo", { home: "none" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker });
  const send = (content: string) => app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
  await send("first");
  const { run } = (await runner.claim()).body;
  expect(run.execution.instruction).toBe("first");
  expect(run.work_dir).toBe(`/nowhere/homes/${run.execution.execution_id}`);
  await send("second");
  await waitUntil(
    "it waits",
    async () => (await app.call(`GET /api/workers/${worker}/status`)).pending === 1,
  );
  const other = await createTask(app, worker, "of nobody");
  const { run: next } = (await runner.claim()).body;
  expect(next.execution.task_id).toBe(other);
  expect((await runner.claim({ wait_ms: 0 })).body.run).toBe(null);
  await runner.end(run.execution.execution_id, { sessionId: "session-1" });
  const { run: last } = (await runner.claim()).body;
  expect(last.execution.instruction).toBe("second");
  // A session of an engine would miss its directory.
  expect(last.briefing.session).toBe(null);
  expect(await app.call(`GET /api/contexts?session_key=local:${session.id}`)).toEqual([]);
});

it("home none can be set, ended and shown, and needs runners and no work_dir (contract 33.7)", async () => {
  await using app = await open();
  const worker = await app.call("POST /api/workers", { name: "a", runs_on: ["x"] });
  const route = `/api/workers/${worker.id}`;
  expect(worker.home).toBe("");
  const homeless = await app.call(`PUT ${route}`, { home: "none" });
  expect(homeless.home).toBe("none");
  // A client may send back what it got, and what an older answer had.
  expect((await app.call(`PUT ${route}`, { ...homeless, description: "d" })).home).toBe("none");
  expect((await app.call(`PUT ${route}`, { home: "mac1" })).home).toBe("none");
  expect((await app.call(`PUT ${route}`, { runs_on: ["y"] })).home).toBe("none");
  expect((await app.call("GET /api/fleet")).workers).toMatchObject([{ name: "a", home: "none" }]);
  expect(await refuse(app, `PUT ${route}`, { runs_on: [] })).toMatch(/home.*runs_on/s);
  expect((await app.call(`PUT ${route}`, { home: "", runs_on: [] })).home).toBe("");
  expect(await refuse(app, `PUT ${route}`, { home: "none" })).toMatch(/home.*runs_on/s);
  expect(await refuse(app, "POST /api/workers", { name: "b", home: "none" })).toMatch(/home.*runs_on/s);
  expect(await refuse(app, "POST /api/workers", { name: "b", home: "mac1", runs_on: ["x"] })).toMatch(/home/);
  const fixed = { name: "b", home: "none", runs_on: ["x"], work_dir: "/srv/b" };
  expect(await refuse(app, "POST /api/workers", fixed)).toMatch(/home.*work_dir/s);
  expect(await refuse(app, "POST /api/runners", { name: "None" })).toMatch(/name.*none/s);
});

it("rehome gives a worker none and a runner again (contract 33.7)", async () => {
  await using app = await open();
  await createFakeRunner(app);
  const worker = await createRemoteWorker(app, "echo");
  const route = `POST /api/workers/${worker}/rehome`;
  expect((await app.call(route, { home: "none" })).home).toBe("none");
  expect((await app.call(route, { home: "r1" })).home).toBe("r1");
  expect((await app.call(route, { home: "none" })).home).toBe("none");
  expect((await app.call(route)).home).toBe("");
  const here = await app.call("POST /api/workers", { name: "here" });
  expect(await refuse(app, `POST /api/workers/${here.id}/rehome`, { home: "none" })).toMatch(/runs_on/);
});

it("resources are stored, shown and turned into variables of a launcher (contract 33.8)", async () => {
  await using app = await open();
  const resources = { cpus: 1.5, memory: "8G", gpus: 1, time: "90m" };
  const worker = await app.call("POST /api/workers", { name: "a", runs_on: ["x"], resources });
  const route = `PUT /api/workers/${worker.id}`;
  expect(worker.resources).toEqual(resources);
  expect((await app.call("GET /api/fleet")).workers).toMatchObject([{ resources }]);
  expect((await app.call(route, { resources: { cpus: 2 } })).resources).toEqual({ cpus: 2 });
  for (
    const [field, value] of [["cpus", 0], ["memory", "8GB"], ["gpus", 1.5], ["time", "0s"], [
      "time",
      "soon",
    ]] as const
  ) {
    expect(await refuse(app, route, { resources: { [field]: value } })).toContain(`resources.${field}`);
  }
  expect(await refuse(app, route, { runs_on: [] })).toMatch(/resources.*runs_on/s);
  expect((await app.call(route, { runs_on: [], resources: null })).resources).toBe(null);
  expect(await refuse(app, "POST /api/workers", { name: "b", resources })).toMatch(/resources.*runs_on/s);
  expect(buildResourceVariables(resources)).toEqual({
    SVC_RUN_CPUS: "1.5",
    SVC_RUN_MEMORY: "8192",
    SVC_RUN_GPUS: "1",
    SVC_RUN_TIME: "5400",
  });
  expect(buildResourceVariables({ memory: "1", time: "1500ms" })).toEqual({
    SVC_RUN_MEMORY: "1",
    SVC_RUN_TIME: "2",
  });
  expect(buildResourceVariables(null)).toEqual({});
});

it("only a caller with write:commands sets where runs are (contract-3 20.5)", async () => {
  await using app = await open();
  const { id } = await app.call("POST /api/workers", { name: "a", runs_on: ["x"] });
  const { token } = await app.call("POST /api/tokens", {
    name: "t",
    scopes: ["read:workers", "write:workers"],
  });
  for (const change of [{ runs_on: ["y"] }, { home: "none" }, { resources: { cpus: 1 } }]) {
    const { status, body } = await app.send(`PUT /api/workers/${id}`, change, {
      authorization: `Bearer ${token}`,
    });
    expect([status, (body as { detail: string }).detail]).toEqual([
      403,
      expect.stringContaining("write:commands"),
    ]);
  }
});
