import { join } from "node:path";
import { expect, it } from "vitest";
import { fakeEnvironment } from "../harness/agents.ts";
import { type Client, client } from "../harness/client.ts";
import { startServer, tempDir } from "../harness/process.ts";
import { random } from "../harness/schedule.ts";
import { found } from "../harness/wait.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

// A round is a start of the service; more of them with SVC_TEST_RACES.
const ROUNDS = Deno.env.has("SVC_TEST_RACES") ? 50 : 2;
const OFFSET_MAX_MS = 5;

const until = <T>(look: () => Promise<T | null>) => found(look, 60_000);

/** Asks as the agent of a run that stays; answers the question. */
async function ask(api: Client, session: string, file: string, text: string): Promise<Json> {
  await Deno.remove(file).catch(() => {});
  const { message_id } = await api.call(`POST /api/local/sessions/${session}/messages`, {
    content: `show-token-and-stay ${file}`,
  });
  const token = await until(() => Deno.readTextFile(file).then((text) => text.trim() || null, () => null));
  const headers = { authorization: `Bearer ${token}` };
  return await api.call("POST /api/questions", { message_id, text }, headers);
}

it(
  `an answer survives kill -9 of the service at any moment, and is brought once: ${ROUNDS} kills [QST-1]`,
  async () => {
    await using folder = await tempDir();
    const options = { dataDir: folder.path, env: fakeEnvironment() };
    const file = join(folder.path, "token");
    const chance = random(7);
    const offset = () =>
      new Promise((resolve) => setTimeout(resolve, Math.floor(chance() * (OFFSET_MAX_MS + 1))));
    let server = await startServer(options);
    try {
      let api = await client(server.url);
      const worker = await api.call("POST /api/workers", { name: "Ada" });
      for (let round = 0; round < ROUNDS; round++) {
        const session = await api.call("POST /api/local/sessions", { worker_id: worker.id });
        const { id, text } = await ask(api, session.id, file, `Which ${round}?`);
        const before = api;
        const give = (words: string) => before.send(`POST /api/questions/${id}/answer`, { answer: words });
        const [first] = await Promise.all([
          offset().then(() => give("early")).then(({ status }) => status, () => 0),
          offset().then(() => server.end("SIGKILL")),
        ]);
        server = await startServer(options);
        api = await client(server.url);
        const found = await api.call(`GET /api/questions/${id}`);
        expect(first === 200 ? "answered" : found.status).toBe(found.status);
        const second = await api.send(`POST /api/questions/${id}/answer`, { answer: "late" });
        expect([found.status, second.status]).toEqual(
          found.status === "open" ? ["open", 200] : ["answered", 409],
        );
        const tasks: Json[] = await api.call(`GET /api/tasks?session_key=local:${session.id}`);
        const brought = tasks.filter(({ instruction }) => instruction.includes(`You asked: ${text}`));
        expect(brought.map(({ instruction }) => instruction.split("The answer: ")[1])).toEqual([
          found.status === "open" ? "late" : "early",
        ]);
        await api.call(`DELETE /api/local/sessions/${session.id}`);
      }
    } finally {
      await server.end("SIGKILL");
    }
  },
  120_000 + ROUNDS * 60_000,
);
