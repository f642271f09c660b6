// The service is killed while webhooks are told what happens: everything in order, at least once, under the same id.
import { join } from "node:path";
import { expect, it } from "vitest";
import { fakeEnvironment } from "../harness/agents.ts";
import { type ServerProcess, startServer, tempDir } from "../harness/process.ts";
import { random } from "../harness/schedule.ts";
import { eventually } from "../harness/wait.ts";
import { Receiver } from "./fakes/receiver.ts";

// .ci/long runs fifty kills.
const KILLS = Number(Deno.env.get("SVC_TEST_WEBHOOK_KILLS") ?? 3);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;

it(
  `${KILLS} kills while a webhook is told of events: in order, at least once, with the same ids (seed ${SEED}) [WHK-3]`,
  async () => {
    await using folder = await tempDir();
    await using receiver = new Receiver(SECRET);
    receiver.delayMs = 30;
    const config = join(folder.path, "svc.yaml");
    const one = {
      name: "out",
      url: receiver.url,
      secret: SECRET,
      events: ["department.created"],
      allow_private: true,
    };
    await Deno.writeTextFile(config, JSON.stringify({ webhooks: [one] }));
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir);
    const start = () => startServer({ dataDir, env: fakeEnvironment(), args: ["-c", config] });
    const chance = random(SEED);
    let server = await start();
    const names: string[] = [];
    try {
      for (let kill = 0; kill < KILLS; kill++) {
        const token = await login(server);
        for (let i = 0; i < 10; i++) {
          const name = `d${names.length}`;
          await create(server, token, name);
          names.push(name);
        }
        await new Promise((resolve) => setTimeout(resolve, chance() * 300));
        await server.end("SIGKILL");
        server = await start();
      }
      const named = () => receiver.got.map(({ body }) => body.data.data.name as string);
      await eventually("all were told", () => names.every((name) => named().includes(name)), 60_000);
      expect([...new Set(named())]).toEqual(names);
      const ids = new Map(receiver.got.map(({ id, body }) => [body.data.seq, id]));
      for (const { id, body } of receiver.got) expect(ids.get(body.data.seq)).toBe(id);
      // What comes again is only what was on its way at a kill.
      const again = receiver.got.length - names.length;
      console.log(`${KILLS} kills, ${names.length} events: ${again} told twice`);
      expect(again).toBeLessThanOrEqual(KILLS);
      expect(receiver.faults).toEqual([]);
    } finally {
      await server.end("SIGKILL");
    }
  },
  1_200_000,
);

async function login({ url }: ServerProcess): Promise<string> {
  const response = await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: "pass" }),
  });
  return (await response.json()).access_token;
}

async function create({ url }: ServerProcess, token: string, name: string): Promise<void> {
  const response = await fetch(`${url}/api/departments`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ name }),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`${response.status}`);
}
