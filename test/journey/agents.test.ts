import { join } from "node:path";
import { describe, expect, it as always } from "vitest";
import { detectIsolation, findMarked } from "../../src/engine/isolation.ts";
import { Database } from "../../src/store/database.ts";
import { FAKE_AGENT, fakeEngines } from "../harness/agents.ts";
import { openApp, PASSWORD, PASSWORD_HASH } from "../harness/app.ts";
import { client, quiet } from "../harness/client.ts";
import { startServer, tempDir } from "../harness/process.ts";

const ENV = {
  SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH,
  SVC_ENGINES__DEFAULT: "fake",
  SVC_ENGINES__FAKE__KIND: "command",
  SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
};
// The long forms of what processes.test.ts tries at every change.
const LEFT_OUT = !Deno.env.has("SVC_TEST_KILLS");
const it = always.skipIf(LEFT_OUT);
const KILLS = Number(Deno.env.get("SVC_TEST_KILLS") ?? 3);
const RUNS = Number(Deno.env.get("SVC_TEST_RUNS") ?? 150);
const AGENTS = 8;
const NAMESPACES = await detectIsolation() === "namespace";

describe("agents and the end of their server", () => {
  always.skipIf(LEFT_OUT || !NAMESPACES)(
    `${KILLS} kills with ${AGENTS} agents: none of them works on without its server (promises CHD-3)`,
    async () => {
      await using folder = await tempDir();
      const dataDir = folder.path;
      const env = {
        ...ENV,
        SVC_LIMITS__MAX_CONCURRENT_RUNS: String(AGENTS),
        SVC_LIMITS__MAX_ATTEMPTS: "100",
      };
      for (let kill = 0; kill < KILLS; kill++) {
        const server = await startServer({ dataDir, env });
        const api = await client(server.url, PASSWORD);
        if (kill === 0) {
          for (let i = 0; i < AGENTS; i++) {
            const { id } = await api.call("POST /api/workers", { name: `w${i}` });
            const instruction = i % 2 === 0 ? "ignore-term" : "sleep 300";
            await api.call("POST /api/tasks", {
              message_id: "m",
              worker_id: id,
              type: "immediate",
              instruction,
            });
          }
        }
        while ((await api.call("GET /api/system/overview")).executions.running < AGENTS) await pause();
        await server.end("SIGKILL");
        const killed = performance.now();
        const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
        const open = await db.read<{ run_id: string }>(
          "select run_id from execution where status = 'running'",
        );
        await db.close();
        expect(open).toHaveLength(AGENTS);
        const marks = new Set(open.map((row) => row.run_id));
        while ((await findMarked(marks)).length > 0) expect(performance.now() - killed).toBeLessThan(5_000);
      }
    },
    30_000 + KILLS * 6_000,
  );

  it(
    "a task that takes the server down with it is given up after three attempts, and others flow again (promises DSP-4)",
    async () => {
      await using folder = await tempDir();
      const dataDir = folder.path;
      let taskId = "";
      for (let death = 1; death <= 3; death++) {
        const server = await startServer({ dataDir, env: { ...ENV, SVC_FAULT: "spawn.post:1:kill" } });
        if (death === 1) {
          const api = await client(server.url, PASSWORD);
          const { id } = await api.call("POST /api/workers", { name: "Ada" });
          const body = { message_id: "m", worker_id: id, type: "immediate", instruction: "poison" };
          // The answer may come too late to be read.
          await api.send("POST /api/tasks", body).catch(() => {});
        }
        expect((await server.child.status).signal).toBe("SIGKILL");
        expect(server.stderr).toContain("SVC_FAULT fired: spawn.post:1:kill");
      }
      await using server = await startServer({ dataDir, env: ENV });
      const api = await client(server.url, PASSWORD);
      const [worker] = await api.call("GET /api/workers");
      const [task] = await api.call(`GET /api/tasks?worker_id=${worker.id}`);
      taskId = task.id;
      expect(task).toMatchObject({
        status: "failed",
        attempt: 3,
        reason: expect.stringMatching(/server_lost/),
      });
      for (let i = 0; i < 10; i++) {
        const body = { message_id: "m", worker_id: worker.id, type: "immediate", instruction: `say ${i}` };
        await api.call("POST /api/tasks", body);
      }
      await quiet(api);
      const tasks = await api.call(`GET /api/tasks?worker_id=${worker.id}&status=completed`);
      expect(tasks).toHaveLength(10);
      expect(tasks.map((one: { id: string }) => one.id)).not.toContain(taskId);
      await server.end("SIGTERM");
    },
    60_000,
  );

  it(`${RUNS} runs leave no zombie, no descriptor and no file behind (promises CHD-14)`, async () => {
    await using app = await openApp({ config: { engines: fakeEngines() }, inMemory: true });
    const workers = await Promise.all(
      ["a", "b", "c", "d"].map((name) => app.call("POST /api/workers", { name })),
    );
    const run = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const worker_id = workers[i % workers.length].id;
        await app.call("POST /api/tasks", {
          message_id: "m",
          worker_id,
          type: "immediate",
          instruction: `say ${i}`,
        });
      }
      await app.settle(60_000);
    };
    await run(20);
    const before = descriptors();
    await run(RUNS);
    expect((await app.call("GET /api/system/overview")).executions).toMatchObject({
      completed: RUNS + 20,
      failed: 0,
    });
    expect(await zombies()).toEqual([]);
    expect(descriptors()).toBeLessThanOrEqual(before + 3);
    const runs = await Array.fromAsync(Deno.readDir(app.server.service.paths.runs)).catch(() => []);
    expect(runs).toEqual([]);
  }, 90_000);
});

function descriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

/** Children of this process that have ended and that nobody has waited for. */
async function zombies(): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await Deno.readTextFile(`/proc/${name}/stat`).catch(() => "");
    const [state, parent] = stat.split(") ")[1]?.split(" ") ?? [];
    if (state === "Z" && Number(parent) === Deno.pid) found.push(stat);
  }
  return found;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
