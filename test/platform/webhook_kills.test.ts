// Kills the service during deliveries to a webhook.
import { join } from "node:path";
import { expect, it } from "vitest";
import { createTempDir } from "../harness/service/process.ts";
import { runScenario } from "../harness/model/scenario.ts";
import { waitUntil } from "../harness/wait.ts";
import { Receiver, SECRET } from "./fakes/receiver.ts";

// .ci/long runs fifty kills.
const KILLS = Number(Deno.env.get("SVC_TEST_WEBHOOK_KILLS") ?? 2);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

const EVENTS_PER_ROUND = 10;

it(
  `${KILLS} kills during deliveries to a webhook: events arrive in order, at least once, with the same ids (seed ${SEED}) [WHK-3]`,
  async () => {
    await using folder = await createTempDir();
    await using receiver = new Receiver();
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
  await waitUntil("all events arrive", () => names.every((name) => received().includes(name)));
  expect([...new Set(received())]).toEqual(names);
  const ids = new Map(receiver.got.map(({ id, body }) => [body.data.seq, id]));
  for (const { id, body } of receiver.got) expect(ids.get(body.data.seq)).toBe(id);
  // Only an event in transit at a kill is repeated.
  const again = receiver.got.length - names.length;
  console.log(`${KILLS} kills, ${names.length} events: ${again} sent twice`);
  expect(again).toBeLessThanOrEqual(KILLS);
  expect(receiver.faults).toEqual([]);
}
