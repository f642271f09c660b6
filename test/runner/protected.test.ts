import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createRemoteWorker, createTask, startRunner, waitUntilOnline } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const ENGINES = `engines:
  default: fake
  fake: { kind: command, command: ${FAKE_AGENT} }
  sh: { kind: command, command: ${FAKE_AGENT} }
`;

/** Starts the runner r1, which cannot set up a box. */
async function connect(app: App) {
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const programs = join(app.dataDir, "programs");
  await Deno.mkdir(programs);
  await Deno.writeTextFile(join(programs, "bwrap"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const runner = await startRunner({
    ...{ token, url: app.url, root: join(app.dataDir, "r1"), config: ENGINES },
    env: { PATH: `${programs}:${Deno.env.get("PATH")}` },
  });
  await waitUntilOnline(app, "r1");
  return runner;
}

/** Changes the row of a worker as a write of an earlier version or of another process would, which no check saw. */
function change(app: App, id: string, columns: string, ...args: string[]) {
  return app.db.write([{ sql: `update worker set ${columns} where id = ?`, args: [...args, id] }]);
}

it("a worker in a box, with a secret or an engine behind a gateway of another kind never runs on a runner without it: its task waits and says what is missing [BOX-1]", async () => {
  await using app = await openApp({
    config: {
      gateways: { model: { kind: "openai", secret: "key" } },
      engines: { codex: { gateway: "model" }, fake: { kind: "codex", gateway: "model" } },
    },
  });
  await using _runner = await connect(app);
  const cases = [
    [
      "isolation = ?",
      JSON.stringify("box"),
      "runner:x",
      "needs a box, and no runner with the labels x can set one up",
    ],
    [
      "isolation = ?",
      JSON.stringify({ box: { network: "none" } }),
      "runner:x",
      "needs a box, and no runner with the labels x can set one up",
    ],
    [
      "engine = 'sh', env = ?",
      JSON.stringify({ GITHUB: "secret:github" }),
      "runner:x",
      "names a secret in its variables, and no runner with the labels x gets secrets",
    ],
    ["engine = ?", "fake", "runner:x", "has the engine fake with a program that can use the gateway model"],
  ] as const;
  for (const [columns, value, held, reason] of cases) {
    const worker = await createRemoteWorker(app, "sh");
    await change(app, worker, columns, value);
    const task = await createTask(app, worker, "touch ran");
    await waitUntil("it waits", async () => (await app.call(`GET /api/tasks/${task}`)).reason !== "");
    expect(await app.call(`GET /api/tasks/${task}`)).toMatchObject({
      status: "pending",
      held_by: { kind: "runner" },
      reason: expect.stringContaining(reason),
    });
    expect(await app.db.readValue("select held from task where id = ?", [task])).toBe(held);
    expect(await app.call(`GET /api/executions?worker_id=${worker}`)).toEqual([]);
  }
});

it("a runner fails a run with isolation or setup when its worker got a box or a secret after the claim, and starts nothing [BOX-2]", async () => {
  await using app = await openApp();
  await using runner = await connect(app);
  for (
    const [columns, value, failure] of [
      ["isolation = ?", JSON.stringify("box"), "isolation"],
      ["env = ?", JSON.stringify({ GITHUB: "secret:github" }), "setup"],
    ] as const
  ) {
    const worker = await createRemoteWorker(app, "fake");
    const { first } = app.db;
    app.db.first = (async (sql: string, ...more: []) => {
      const row = await first.call(app.db, sql, ...more);
      if (sql.includes("remote_run.request_id =") && row !== null) await change(app, worker, columns, value);
      return row;
    }) as typeof first;
    await createTask(app, worker, "touch ran");
    const list = () => app.call(`GET /api/executions?worker_id=${worker}`);
    await waitUntil("it fails", async () => (await list())[0]?.status === "failed");
    app.db.first = first;
    expect((await list())[0]).toMatchObject({ failure });
    const isThere = await Deno.stat(join(runner.root, "workers", worker, "ran")).then(
      () => true,
      () => false,
    );
    expect(isThere).toBe(false);
  }
});
