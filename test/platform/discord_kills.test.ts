// Discord acknowledges nothing and keeps nothing for who is away: what a kill leaves out is found in its history.
import { join } from "node:path";
import { expect, it } from "vitest";
import { fakeEnvironment } from "../harness/agents.ts";
import { startServer, tempDir } from "../harness/process.ts";
import { eventually } from "../harness/wait.ts";
import { DiscordWorld } from "./worlds/discord.ts";

const KILLS = 2;
const MESSAGES_OF_A_KILL = 3;

it(
  "Discord: a kill loses no message of a known conversation, and no reply comes twice (reliability PLT-1)",
  async () => {
    await using folder = await tempDir();
    await using world = new DiscordWorld();
    const config = join(folder.path, "svc.yaml");
    const guild = { ...world.config, worker: "Ada", allow: ["*"] };
    await Deno.writeTextFile(config, JSON.stringify({ platforms: { guild } }));
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir);
    const start = () => startServer({ dataDir, env: fakeEnvironment(), args: ["-c", config] });
    let server = await start();
    const texts = () => world.sent().map(({ text }) => text);
    const answered = (text: string) => eventually(text, () => texts().includes(text), 60_000);
    try {
      const login = await fetch(`${server.url}/api/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username: "admin", password: "pass" }),
      });
      const { access_token } = await login.json();
      const made = await fetch(`${server.url}/api/workers`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${access_token}` },
        body: JSON.stringify({ name: "Ada" }),
      });
      expect(made.status).toBe(201);
      const people = Array.from({ length: KILLS * MESSAGES_OF_A_KILL }, (_, i) => String(100 + i));
      for (const from of people) await world.say(`say hello ${from}`, { from });
      for (const from of people) await answered(`hello ${from}`);
      for (let kill = 0; kill < KILLS; kill++) {
        const [first = "", second = "", ...away] = people.slice(kill * MESSAGES_OF_A_KILL);
        await world.say(`say answer ${first}`, { from: first });
        await world.say(`say answer ${second}`, { from: second });
        await server.end("SIGKILL");
        for (const from of away.slice(0, MESSAGES_OF_A_KILL - 2)) {
          await world.say(`say answer ${from}`, {
            from,
          });
        }
        server = await start();
      }
      for (const from of people) await answered(`answer ${from}`);
      const twice = texts().filter((text, at) => /^answer/.test(text) && texts().indexOf(text) !== at);
      expect(twice).toEqual([]);
      expect(world.faults()).toEqual([]);
    } finally {
      await server.end("SIGKILL");
    }
  },
  300_000,
);
