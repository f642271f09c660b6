import { join } from "node:path";
import { expect, it } from "vitest";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { Database } from "../../src/store/database.ts";
import { fakeEnvironment, readLedger } from "../harness/agents.ts";
import { type Client, client } from "../harness/client.ts";
import { type ServerProcess, startServer, tempDir } from "../harness/process.ts";
import { eventually } from "../harness/wait.ts";
import { patient } from "../harness/patience.ts";

// The long run: SVC_TEST_AGENT_KILLS=50 SVC_TEST_RUNS=1000.
const KILLS = Number(Deno.env.get("SVC_TEST_AGENT_KILLS") ?? 1);
const RUNS = Number(Deno.env.get("SVC_TEST_RUNS") ?? 60);
const AGENTS = 8;

async function makeWorkers(api: Client, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await api.call("POST /api/workers", { name: `w${i}` })).id);
  return ids;
}

async function give(api: Client, worker_id: string, instruction: string): Promise<string> {
  const body = { message_id: "script", worker_id, instruction, type: "immediate" };
  return (await api.call("POST /api/tasks", body)).id;
}

/** The marks of all runs that a server left in its database. */
async function marks(dataDir: string): Promise<Set<string>> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const rows = await db.read<{ run_id: string }>("select run_id from execution");
  await db.close();
  return new Set(rows.map((row) => row.run_id));
}

it(
  `${KILLS} kills of the server with ${AGENTS} stubborn agents: none works on, none is alive when its task is given out again (reliability CHD-3)`,
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    const ledger = join(folder.path, "ledger");
    await Deno.mkdir(dataDir);
    const env = {
      ...fakeEnvironment(ledger),
      SVC_LIMITS__MAX_CONCURRENT_RUNS: String(AGENTS),
      SVC_LIMITS__STOP_GRACE: "100ms",
    };
    let server = await startServer({ dataDir, env });
    let api = await client(server.url);
    const workers = await makeWorkers(api, AGENTS);
    for (let kill = 1; kill <= KILLS; kill++) {
      const tasks = await Promise.all(workers.map((worker) => give(api, worker, "tick")));
      const working = async () => {
        const lines = await readLedger(ledger);
        return tasks.every((task) => lines.some((line) => line.task === task && line.word === "tick"));
      };
      await eventually("all agents work", working);
      await server.end("SIGKILL");
      const killedAt = Date.now();
      const runs = await marks(dataDir);
      await eventually(
        "the agents end with their server",
        async () => (await findMarked(runs)).length === 0,
        5_000,
      );
      const lastTick = Math.max(...(await readLedger(ledger)).map((line) => line.at));
      expect(lastTick - killedAt).toBeLessThan(patient(5_000));
      server = await startServer({ dataDir, env });
      api = await client(server.url);
      const again = async () => {
        const second = (await readLedger(ledger)).filter((line) =>
          line.word === "start" && line.attempt === 2
        );
        return tasks.every((task) => second.some((line) => line.task === task));
      };
      await eventually("every task is given out again", again);
      await api.call("DELETE /api/contexts?session_key=cli:script");
    }
    // The lock of a task is held by every process of its run, so one that was left over would be noticed here.
    expect((await readLedger(ledger)).filter((line) => line.word === "OVERLAP")).toEqual([]);
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(await findMarked(await marks(dataDir))).toEqual([]);
  },
  60_000 + KILLS * 60_000,
);

it(`${RUNS} runs leave no zombie, no descriptor and no memory behind (reliability CHD-14)`, async () => {
  await using folder = await tempDir();
  await using server = await startServer({ dataDir: folder.path, env: fakeEnvironment() });
  const api = await client(server.url);
  const workers = await makeWorkers(api, 4);
  const MODES = ["ok", "exit 3", "both", "setsid-escape", "silent", "hold-stdout"];
  const round = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await give(api, workers[i % workers.length] ?? "", MODES[i % 4 === 3 ? i % MODES.length : i % 3] ?? "");
    }
    await eventually("all runs end", async () => {
      const { tasks } = await api.call("GET /api/system/overview");
      return tasks.pending + tasks.running === 0;
    }, 20_000 + count * 200);
    await eventually("no child is left", async () => (await server.children()).length === 0, 5_000);
    return { descriptors: server.descriptors(), memory: await server.memory() };
  };
  const warm = await round(Math.ceil(RUNS / 3));
  const after = await round(RUNS);
  expect(after.descriptors).toBeLessThanOrEqual(warm.descriptors + 3);
  expect(after.memory - warm.memory).toBeLessThan(40e6);
  expect(await api.call("GET /api/system/overview")).toMatchObject({
    executions: { running: 0, pending: 0 },
  });
}, 60_000 + RUNS * 500);

it(
  "a task that takes the server down with it fails after three attempts, and all others are done (reliability DSP-4)",
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    const wish = join(folder.path, "wish");
    await Deno.mkdir(dataDir);
    const env = fakeEnvironment();
    let server: ServerProcess = await startServer({ dataDir, env });
    let api = await client(server.url);
    const [poison = "", ...healthy] = await makeWorkers(api, 5);
    // In its namespace an agent cannot reach the server, so the test does it instead.
    const bomb = await give(api, poison, `touch-and-stay ${wish}`);
    const others: string[] = [];
    for (let i = 0; i < 50; i++) others.push(await give(api, healthy[i % 4] ?? "", "ok"));
    let deaths = 0;
    const taskOf = (id: string) => api.call(`GET /api/tasks/${id}`);
    while ((await taskOf(bomb)).status !== "failed") {
      if (await Deno.remove(wish).then(() => true, () => false)) {
        await server.end("SIGKILL");
        deaths++;
        server = await startServer({ dataDir, env });
        api = await client(server.url);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(deaths).toBe(3);
    expect(await taskOf(bomb)).toMatchObject({ attempt: 3, reason: expect.stringMatching(/^server_lost: /) });
    await eventually("the others are done", async () => {
      const { tasks } = await api.call("GET /api/system/overview");
      return tasks.pending + tasks.running === 0;
    });
    for (const id of others) expect((await taskOf(id)).status).toBe("completed");
    await server.end("SIGTERM");
  },
  180_000,
);

it(
  "a run's token is worth nothing a second after its end, however it ended, nor in the next attempt (reliability SCP-5, SCP-6)",
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir);
    const env = {
      ...fakeEnvironment(),
      SVC_ENGINES__FAKE__TIMEOUT: "6s",
      SVC_LIMITS__STOP_GRACE: "100ms",
    };
    let server: ServerProcess = await startServer({ dataDir, env });
    let api = await client(server.url);
    const [worker = ""] = await makeWorkers(api, 1);
    const tokenFile = join(folder.path, "token");
    const statusWith = async (token: string) => {
      const response = await fetch(`${server.url}/api/workers`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await response.body?.cancel();
      return response.status;
    };
    const begin = async (mode: string) => {
      await Deno.remove(tokenFile).catch(() => {});
      const task = await give(api, worker, `${mode} ${tokenFile}`);
      return { task, token: await tokenOfRun() };
    };
    const tokenOfRun = async () => {
      let token = "";
      await eventually("the agent has shown its token", async () => {
        token = (await Deno.readTextFile(tokenFile).catch(() => "")).trim();
        return token !== "";
      });
      return token;
    };
    const deadWithin = async (what: string, ms: number, token: string) => {
      await eventually(`the token is dead after ${what}`, async () => await statusWith(token) === 401, ms);
    };
    const ended = (task: string) =>
      eventually(
        "the task ends",
        async () =>
          ["completed", "failed", "cancelled"].includes((await api.call(`GET /api/tasks/${task}`)).status),
      );

    const left = await begin("show-token-and-leave");
    await ended(left.task);
    expect(await statusWith(left.token)).toBe(401);

    const cancelled = await begin("show-token-and-stay");
    expect(await statusWith(cancelled.token)).toBe(200);
    const [running] = await api.call("GET /api/executions?status=running");
    await api.call(`POST /api/executions/${running.id}/cancel`, {});
    expect(await statusWith(cancelled.token)).toBe(401);

    const late = await begin("show-token-and-stay");
    expect(await statusWith(late.token)).toBe(200);
    await eventually("its tree is ended", async () => (await findMarked(await marks(dataDir))).length === 0);
    await deadWithin("a timeout", 1_000, late.token);

    const first = await begin("show-token-and-stay");
    expect(await statusWith(first.token)).toBe(200);
    await Deno.remove(tokenFile);
    await server.end("SIGKILL");
    server = await startServer({ dataDir, env });
    api = await client(server.url);
    expect(await statusWith(first.token)).toBe(401);
    const second = await tokenOfRun();
    expect(await statusWith(second)).toBe(200);
    expect(await statusWith(first.token)).toBe(401);
    await server.end("SIGKILL");
  },
  180_000,
);
