import { expect, it, vi } from "vitest";
import type { Client } from "../../harness/service/client.ts";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";

// The long run: SVC_TEST_REPLIES=1000.
const REPLIES = Number(Deno.env.get("SVC_TEST_REPLIES") ?? 60);
const DROPS = Math.ceil(REPLIES / 5);
const KILLS = Math.max(2, Math.floor(REPLIES / 50));
const STALLED = Number(Deno.env.get("SVC_TEST_READERS") ?? 50);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const ENV = { SVC_ENGINES__DEFAULT: "echo" };

vi.setConfig({ testTimeout: 270_000 + REPLIES * 200 });

it(`${REPLIES} replies with ${DROPS} dropped streams and ${KILLS} kills of the server arrive once each, in order (seed ${SEED}) [SSE-1, SSE-2]`, async () => {
  await using world = await World.serve({ env: ENV, seed: SEED });
  const { chance } = world;
  const { id: worker_id } = await world.api.call("POST /api/workers", { name: "Ada" });
  const { id } = await world.api.call("POST /api/local/sessions", { worker_id });
  const { message_id } = await world.api.call(`POST /api/local/sessions/${id}/messages`, { content: "0" });

  // A client that sends work as fast as the service does it, and repeats requests without a response.
  let given = 1;
  let serving = true;
  let over = false;
  const giving = (async () => {
    while (!over && given < REPLIES) {
      const body = { message_id, worker_id, instruction: String(given), type: "immediate" };
      const sent = serving && await give(world.api, body, `reply-${given}`);
      if (sent) given++;
      await new Promise((resolve) => setTimeout(resolve, sent ? chance() * 10 : 20));
    }
  })();

  const seen: { id: number; content: string }[] = [];
  let lastId = "0";
  let drops = 0;
  let kills = 0;
  while (new Set(seen.map((one) => one.content)).size < REPLIES) {
    if (kills < KILLS && seen.length >= (kills + 1) * REPLIES / (KILLS + 1)) {
      serving = false;
      await world.restart();
      serving = true;
      kills++;
    }
    const events = await world.api.stream(id, { "last-event-id": lastId });
    const patience = drops < DROPS ? 1 + Math.floor(chance() * REPLIES / DROPS) : REPLIES;
    const enough = REPLIES - new Set(seen.map((one) => one.content)).size;
    await events.until((one) => one.named("message").length >= Math.min(patience, enough), 20_000);
    await events.close();
    drops++;
    for (const event of events.events) {
      expect(Number(event.id)).toBeGreaterThan(Number(lastId));
      lastId = event.id ?? "";
      if (event.event === "message") seen.push({ id: Number(event.id), content: event.data.content });
    }
  }
  over = true;
  await giving;
  // The events of one stream may continue after the next kill.
  expect(kills).toBeGreaterThan(0);
  expect(drops).toBeGreaterThanOrEqual(DROPS / 2);
  expect(seen.map((one) => Number(one.content)).sort((a, b) => a - b)).toEqual(
    Array.from({ length: REPLIES }, (_, index) => index),
  );
});

async function give(api: Client, body: object, key: string): Promise<boolean> {
  try {
    return (await api.send("POST /api/tasks", body, { "idempotency-key": key })).status === 201;
  } catch {
    // The server was killed before it responded, or its address has changed.
    return false;
  }
}

it(`${STALLED} readers that stop reading during 30 MB cost no memory, and miss nothing after they reconnect [SSE-4, SSE-5]`, async () => {
  await using world = await World.serve({ env: ENV });
  const { server, api } = world;
  const { id: worker_id } = await api.call("POST /api/workers", { name: "Ada" });
  const { id } = await api.call("POST /api/local/sessions", { worker_id });
  const { message_id } = await api.call(`POST /api/local/sessions/${id}/messages`, { content: "0" });
  const before = { memory: await server.memory(), descriptors: server.descriptors() };
  const { hostname, port } = new URL(server.url);
  const request = new TextEncoder().encode(
    `GET /api/local/sessions/${id}/stream?after=0 HTTP/1.1\r\nhost: ${hostname}\r\n` +
      `authorization: Bearer ${api.token}\r\n\r\n`,
  );
  const readers = await Promise.all(Array.from({ length: STALLED }, async () => {
    const connection = await Deno.connect({ hostname, port: Number(port) });
    await connection.write(request);
    await connection.read(new Uint8Array(100));
    return connection;
  }));
  const content = "x".repeat(250_000);
  let most = 0;
  for (let i = 0; i < 120; i++) {
    await api.call("POST /api/messages", { message_id, content: `${i} ${content}` });
    most = Math.max(most, await server.memory());
  }
  expect(most - before.memory).toBeLessThan(150e6);
  for (const reader of readers) reader.close();
  await waitUntil("the connections are closed", () => server.descriptors() <= before.descriptors + 2);
  const again = await api.stream(id, { "last-event-id": "0" });
  await again.until((one) => one.named("message").length >= 121, 20_000);
  const numbers = again.named("message").map(({ data }) => data.content.split(" ")[0]);
  expect(numbers.filter((text: string) => text.length < 4).length).toBe(121);
  await again.close();
});
