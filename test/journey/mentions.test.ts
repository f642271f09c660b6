import { join } from "node:path";
import { expect, it } from "vitest";
import { Database } from "../../src/store/database.ts";
import { PASSWORD, PASSWORD_HASH } from "../harness/app.ts";
import { client, quiet } from "../harness/client.ts";
import { startServer, tempDir } from "../harness/process.ts";
import { eventually } from "../harness/wait.ts";
import { patient } from "../harness/patience.ts";

const ENV = { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH };

it(
  "a message whose routing ends the service each time is given up after its attempts, and the conversation is told (reliability BYT-4)",
  async () => {
    await using folder = await tempDir();
    const dataDir = folder.path;
    const deadly = { ...ENV, SVC_FAULT: "routing:1:kill" };
    let session = "";
    {
      await using server = await startServer({ dataDir, env: deadly });
      const api = await client(server.url, PASSWORD);
      await api.call("POST /api/workers", { name: "Ada" });
      session = (await api.call("POST /api/local/sessions")).id;
      await api.send(`POST /api/local/sessions/${session}/messages`, { content: "@Ada hello" }).catch(
        () => {},
      );
      expect((await server.child.status).signal).toBe("SIGKILL");
    }
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
    // Once when it was new, and then bee.max_attempts times.
    expect(deaths).toBe(4);
    await using server = await startServer({ dataDir, env: ENV });
    const api = await client(server.url, PASSWORD);
    await quiet(api);
    const [message] = await api.call("GET /api/messages/inbound");
    expect(message).toMatchObject({ status: "failed", attempt: 3 });
    expect(message.error).toMatch(/ended 3 times while it was being routed/);
    const history = await api.call(`GET /api/local/sessions/${session}/messages`);
    expect(history.at(-1).content).toMatch(/could not be given to anybody/);
    await api.call(`POST /api/local/sessions/${session}/messages`, { content: "@Ada and now" });
    await eventually(
      "it is answered",
      async () => (await api.call(`GET /api/local/sessions/${session}/messages`)).length >= 4,
    );
  },
  720_000,
);

it(
  "a megabyte of mentions for 200 workers: whoever asks meanwhile is answered (reliability BYT-4; figures: make torture ARGS=--hostile)",
  async () => {
    await using folder = await tempDir();
    await using server = await startServer({ dataDir: folder.path, env: ENV });
    const api = await client(server.url, PASSWORD);
    for (let i = 0; i < 200; i++) await api.call("POST /api/workers", { name: `worker-${i}` });
    const sessions = await Promise.all(
      Array.from({ length: 4 }, async () => (await api.call("POST /api/local/sessions")).id),
    );
    const times: number[] = [];
    const texts = ["@ ", "@worker-7 ", "@worker- ", "\u0301".repeat(20) + "\u0316".repeat(20)];
    let sent = false;
    const sending = Promise.all(sessions.map(async (id, index) => {
      const text = texts[index] ?? "";
      const content = text.repeat(Math.floor(250_000 / new TextEncoder().encode(text).length));
      await api.call(`POST /api/local/sessions/${id}/messages`, { content });
    })).then(() => sent = true);
    const until = performance.now() + 2_000;
    while (!sent || performance.now() < until) {
      const started = performance.now();
      await (await fetch(`${server.url}/livez`)).body?.cancel();
      times.push(performance.now() - started);
    }
    await sending;
    await quiet(api, 30_000);
    // It was one turn of 13 seconds for each of them.
    expect(Math.max(...times)).toBeLessThan(patient(2_000));
    await server.end();
    const db = await Database.open(`file:${join(folder.path, "svc.db")}`);
    const routed = await db.read<{ status: string }>("select status from inbound_message");
    await db.close();
    expect(routed.map(({ status }) => status)).toEqual(Array(4).fill("bee_processed"));
  },
  180_000,
);

it(
  "parts that are sent in one go are merged up to 256 KiB, and what is more is the next message (reliability BYT-1)",
  async () => {
    await using folder = await tempDir();
    await using server = await startServer({
      dataDir: folder.path,
      env: { ...ENV, SVC_BEE__QUIET_WINDOW: "1500ms" },
    });
    const api = await client(server.url, PASSWORD);
    const worker = await api.call("POST /api/workers", { name: "Ada" });
    const { id } = await api.call("POST /api/local/sessions", { worker_id: worker.id });
    for (let i = 0; i < 6; i++) {
      await api.call(`POST /api/local/sessions/${id}/messages`, { content: String(i).repeat(100_000) });
    }
    await eventually(
      "three messages are routed and their runs have ended",
      async () => (await api.call("GET /api/executions?status=completed")).length === 3,
      30_000,
    );
    const runs = await api.call("GET /api/executions");
    const instructions: string[] = [];
    for (const run of runs) instructions.push((await api.call(`GET /api/executions/${run.id}`)).instruction);
    expect(instructions.map((text) => text.length)).toEqual([200_001, 200_001, 200_001]);
    expect(instructions.map((text) => text[0])).toEqual(["4", "2", "0"]);
  },
  180_000,
);
