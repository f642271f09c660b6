import { expect, it, vi } from "vitest";
import type { Client, Json } from "../harness/service/client.ts";
import { runScenario, type World } from "../harness/model/scenario.ts";
import { waitForValue } from "../harness/wait.ts";
import { pause } from "../harness/model/workload.ts";

// Each round starts a service. SVC_TEST_RACES adds rounds.
const ROUNDS = Deno.env.has("SVC_TEST_RACES") ? 50 : 2;
const OFFSET_MAX_MS = 5;

/** The open question, its conversation, and the status of the answer that raced with the kill. */
interface OpenQuestion {
  worker: string;
  session: string;
  id: string;
  text: string;
  first: number;
}

vi.setConfig({ testTimeout: 120_000 + ROUNDS * 60_000 });

it(`an answer survives kill -9 of the service at any moment, and is delivered once: ${ROUNDS} kills [QST-1]`, () =>
  runScenario<OpenQuestion>({
    seed: 7,
    rounds: ROUNDS,
    fault: { kind: "kill", afterMs: offsetMs },
    setup: async (world) => {
      const worker = (await world.api.call("POST /api/workers", { name: "Ada" })).id;
      return await ask(world, worker, 0);
    },
    action: async (world, asked) => {
      const { api } = world;
      await pause(offsetMs(world));
      asked.first = await api.send(`POST /api/questions/${asked.id}/answer`, { answer: "early" })
        .then(({ status }) => status, () => 0);
    },
    restarted: async (world, asked, round) => {
      await checkAnswered(world.api, asked);
      await world.api.call(`DELETE /api/local/sessions/${asked.session}`);
      if (round + 1 < ROUNDS) Object.assign(asked, await ask(world, asked.worker, round + 1));
    },
    check: () => Promise.resolve(),
  }));

function offsetMs({ chance }: World): number {
  return Math.floor(chance() * (OFFSET_MAX_MS + 1));
}

/** Asks as the agent of a run that does not end. */
async function ask({ api, path }: World, worker: string, round: number): Promise<OpenQuestion> {
  const { id: session } = await api.call("POST /api/local/sessions", { worker_id: worker });
  const file = path(`token-${round}`);
  const { message_id } = await api.call(`POST /api/local/sessions/${session}/messages`, {
    content: `show-token-and-stay ${file}`,
  });
  const token = await waitForValue(() =>
    Deno.readTextFile(file).then((text) => text.trim() || null, () => null)
  );
  const question = { message_id, text: `Which ${round}?` };
  const { id, text } = await api.call("POST /api/questions", question, { authorization: `Bearer ${token}` });
  return { worker, session, id, text, first: 0 };
}

/** Exactly one answer is stored: the early one, or a late one if the early one was lost. */
async function checkAnswered(api: Client, { id, text, session, first }: OpenQuestion): Promise<void> {
  const { status } = await api.call(`GET /api/questions/${id}`);
  expect(first === 200 ? "answered" : status).toBe(status);
  const second = await api.send(`POST /api/questions/${id}/answer`, { answer: "late" });
  expect([status, second.status]).toEqual(status === "open" ? ["open", 200] : ["answered", 409]);
  const tasks: Json[] = await api.call(`GET /api/tasks?session_key=local:${session}`);
  const brought = tasks.filter(({ instruction }) => instruction.includes(`You asked: ${text}`));
  expect(brought.map(({ instruction }) => instruction.split("The answer: ")[1])).toEqual([
    status === "open" ? "late" : "early",
  ]);
}
