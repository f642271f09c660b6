import { expect, it, vi } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { World } from "../../harness/model/scenario.ts";
import { fetchStatus } from "../../harness/service/client.ts";
import { waitUntil } from "../../harness/wait.ts";
import { createWorkers, readRunMarks } from "../../harness/model/workload.ts";
import { createTask } from "../../harness/service/runner.ts";
const RUNS = Number(Deno.env.get("SVC_TEST_RUNS") ?? 60);

vi.setConfig({ testTimeout: 180_000 + RUNS * 500 });

it(`${RUNS} runs leave no zombie, no descriptor and no memory behind [CHD-14]`, async () => {
  await using world = await World.serve();
  const { server, api } = world;
  const workers = await createWorkers(api, 4);
  const MODES = ["ok", "exit 3", "both", "setsid-escape", "silent", "hold-stdout"];
  const round = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await createTask(
        api,
        workers[i % workers.length] ?? "",
        MODES[i % 4 === 3 ? i % MODES.length : i % 3] ?? "",
      );
    }
    await waitUntil("all runs end", async () => {
      const { tasks } = await api.call("GET /api/system/overview");
      return tasks.pending + tasks.running === 0;
    }, 20_000 + count * 200);
    await waitUntil("only namespaces that wait for a program are left", async () => {
      const children = await server.children();
      return children.length <= 2 && children.every(({ name, state }) => name === "unshare" && state === "S");
    });
    return { descriptors: server.descriptors(), memory: await server.memory() };
  };
  const warm = await round(Math.ceil(RUNS / 3));
  const after = await round(RUNS);
  // Each waiting namespace has a few descriptors, and there may be none at the moment. A leak would be one for each run.
  expect(after.descriptors).toBeLessThanOrEqual(warm.descriptors + RUNS / 2);
  expect(after.memory - warm.memory).toBeLessThan(40e6);
  expect(await api.call("GET /api/system/overview")).toMatchObject({
    executions: { running: 0, pending: 0 },
  });
});

it("a task that kills the server fails after three attempts, and all others are done [DSP-4]", async () => {
  await using world = await World.serve();
  const wish = world.path("wish");
  const [poison = "", ...healthy] = await createWorkers(world.api, 5);
  // An agent cannot reach the server from its namespace, so the test kills it.
  const bomb = await createTask(world.api, poison, `touch-and-stay ${wish}`);
  const others: string[] = [];
  for (let i = 0; i < 50; i++) others.push(await createTask(world.api, healthy[i % 4] ?? "", "ok"));
  let deaths = 0;
  const taskOf = (id: string) => world.api.call(`GET /api/tasks/${id}`);
  while ((await taskOf(bomb)).status !== "failed") {
    if (await Deno.remove(wish).then(() => true, () => false)) {
      await world.restart();
      deaths++;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(deaths).toBe(3);
  expect(await taskOf(bomb)).toMatchObject({ attempt: 3, reason: expect.stringMatching(/^server_lost: /) });
  await waitUntil("the others are done", async () => {
    const { tasks } = await world.api.call("GET /api/system/overview");
    return tasks.pending + tasks.running === 0;
  });
  for (const id of others) expect((await taskOf(id)).status).toBe("completed");
});

it("a run's token is invalid within a second of any kind of end, and stays invalid during the next attempt [SCP-5, SCP-6]", async () => {
  await using world = await World.serve({
    env: { SVC_ENGINES__FAKE__TIMEOUT: "6s", SVC_LIMITS__STOP_GRACE: "100ms" },
  });
  const { dataDir } = world;
  const [worker = ""] = await createWorkers(world.api, 1);
  const tokenFile = world.path("token");
  const statusWith = (token: string) =>
    fetchStatus(`${world.server.url}/api/workers`, { authorization: `Bearer ${token}` });
  const begin = async (mode: string) => {
    await Deno.remove(tokenFile).catch(() => {});
    const task = await createTask(world.api, worker, `${mode} ${tokenFile}`);
    return { task, token: await tokenOfRun() };
  };
  const tokenOfRun = async () => {
    let token = "";
    await waitUntil("the agent has written its token", async () => {
      token = (await Deno.readTextFile(tokenFile).catch(() => "")).trim();
      return token !== "";
    });
    return token;
  };
  const deadWithin = async (what: string, ms: number, token: string) => {
    await waitUntil(`the token is dead after ${what}`, async () => await statusWith(token) === 401, ms);
  };
  const ended = (task: string) =>
    waitUntil(
      "the task ends",
      async () =>
        ["completed", "failed", "cancelled"].includes(
          (await world.api.call(`GET /api/tasks/${task}`)).status,
        ),
    );

  const left = await begin("show-token-and-leave");
  await ended(left.task);
  expect(await statusWith(left.token)).toBe(401);

  const cancelled = await begin("show-token-and-stay");
  expect(await statusWith(cancelled.token)).toBe(200);
  const [running] = await world.api.call("GET /api/executions?status=running");
  await world.api.call(`POST /api/executions/${running.id}/cancel`, {});
  expect(await statusWith(cancelled.token)).toBe(401);

  const late = await begin("show-token-and-stay");
  expect(await statusWith(late.token)).toBe(200);
  await waitUntil(
    "the processes of the run have ended",
    async () => (await findMarked(await readRunMarks(dataDir))).length === 0,
  );
  await deadWithin("a timeout", 1_000, late.token);

  const first = await begin("show-token-and-stay");
  expect(await statusWith(first.token)).toBe(200);
  await Deno.remove(tokenFile);
  await world.restart();
  expect(await statusWith(first.token)).toBe(401);
  const second = await tokenOfRun();
  expect(await statusWith(second)).toBe(200);
  expect(await statusWith(first.token)).toBe(401);
});
