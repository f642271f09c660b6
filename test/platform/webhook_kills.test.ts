// The service is killed while a webhook gets events: all arrive in order, at least once, with the same id.
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../harness/service/process.ts";
import { runScenario } from "../harness/model/scenario.ts";
import { eventually } from "../harness/wait.ts";
import { Receiver } from "./fakes/receiver.ts";

// .ci/long runs fifty kills.
const KILLS = Number(Deno.env.get("SVC_TEST_WEBHOOK_KILLS") ?? 2);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;

const EVENTS_PER_ROUND = 10;

it(
  `${KILLS} kills while a webhook is told of events: in order, at least once, with the same ids (seed ${SEED}) [WHK-3]`,
  async () => {
    await using folder = await tempDir();
    await using receiver = new Receiver(SECRET);
    receiver.delayMs = 30;
    const config = join(folder.path, "svc.yaml");
    const webhook = {
      name: "out",
      url: receiver.url,
      secret: SECRET,
      events: ["department.created"],
      allow_private: true,
    };
    await Deno.writeTextFile(config, JSON.stringify({ webhooks: [webhook] }));
    await runScenario<string[]>({
      seed: SEED,
      args: ["-c", config],
      rounds: KILLS,
      fault: { kind: "kill after the action", afterMs: ({ chance }) => chance() * 300 },
      setup: () => Promise.resolve([]),
      action: async ({ api }, names) => {
        for (let i = 0; i < EVENTS_PER_ROUND; i++) {
          const name = `d${names.length}`;
          await api.call("POST /api/departments", { name });
          names.push(name);
        }
      },
      check: (_world, names) => checkReceived(receiver, names),
    });
  },
  1_200_000,
);

async function checkReceived(receiver: Receiver, names: string[]): Promise<void> {
  const received = () => receiver.got.map(({ body }) => body.data.data.name as string);
  await eventually("all events arrive", () => names.every((name) => received().includes(name)));
  expect([...new Set(received())]).toEqual(names);
  const ids = new Map(receiver.got.map(({ id, body }) => [body.data.seq, id]));
  for (const { id, body } of receiver.got) expect(ids.get(body.data.seq)).toBe(id);
  // Only an event that was on its way at a kill comes again.
  const again = receiver.got.length - names.length;
  console.log(`${KILLS} kills, ${names.length} events: ${again} told twice`);
  expect(again).toBeLessThanOrEqual(KILLS);
  expect(receiver.faults).toEqual([]);
}
