import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntilQuiet } from "../../harness/service/client.ts";
import { startServer } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";

vi.setConfig({ testTimeout: 720_000 });

const ENV = { SVC_ENGINES__DEFAULT: "echo" };

it("a message whose routing always kills the service fails after its attempts, with a notice in the conversation [BYT-4]", async () => {
  await using world = await World.open({ env: ENV });
  const { dataDir } = world;
  const first = await world.start("routing:1:kill");
  await first.api.call("POST /api/workers", { name: "Ada" });
  const session = (await first.api.call("POST /api/local/sessions")).id;
  const hello = { content: "@Ada hello" };
  await first.api.send(`POST /api/local/sessions/${session}/messages`, hello).catch(() => {});
  expect((await first.server.child.status).signal).toBe("SIGKILL");
  const deadly = { ...world.env, SVC_FAULT: "routing:1:kill" };
  let deaths = 1;
  for (let start = 0; start < 8; start++) {
    const server = await startServer({ dataDir, env: deadly }).catch(() => null);
    if (server !== null) {
      const ended = await Promise.race([
        server.child.status.then(() => true),
        new Promise<false>((resolve) => setTimeout(() => resolve(false), 3_000)),
      ]);
      if (!ended) {
        await server.end();
        break;
      }
    }
    deaths++;
  }
  // The first routing and bee.max_attempts repetitions.
  expect(deaths).toBe(4);
  const { api } = await world.start();
  await waitUntilQuiet(api);
  const [message] = await api.call("GET /api/messages/inbound");
  expect(message).toMatchObject({ status: "failed", attempt: 3 });
  expect(message.error).toMatch(/ended 3 times while routing it/);
  const history = await api.call(`GET /api/local/sessions/${session}/messages`);
  expect(history.at(-1).content).toMatch(/Cannot route this message/);
  await api.call(`POST /api/local/sessions/${session}/messages`, { content: "@Ada and now" });
  await waitUntil(
    "the next message gets its reply",
    async () => (await api.call(`GET /api/local/sessions/${session}/messages`)).length >= 4,
  );
});

it("parts of one send are merged up to 256 KiB, and the rest is the next message [BYT-1]", async () => {
  await using world = await World.serve({ env: { ...ENV, SVC_BEE__QUIET_WINDOW: "1500ms" } });
  const { api } = world;
  const worker = await api.call("POST /api/workers", { name: "Ada" });
  const { id } = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  for (let i = 0; i < 6; i++) {
    await api.call(`POST /api/local/sessions/${id}/messages`, { content: String(i).repeat(100_000) });
  }
  await waitUntil(
    "three messages are routed and their runs have ended",
    async () => (await api.call("GET /api/executions?status=completed")).length === 3,
    30_000,
  );
  const runs = await api.call("GET /api/executions");
  const instructions: string[] = [];
  for (const run of runs) instructions.push((await api.call(`GET /api/executions/${run.id}`)).instruction);
  expect(instructions.map((text) => text.length)).toEqual([200_001, 200_001, 200_001]);
  expect(instructions.map((text) => text[0])).toEqual(["4", "2", "0"]);
});
