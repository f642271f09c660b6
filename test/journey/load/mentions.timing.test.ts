import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntilQuiet } from "../../harness/service/client.ts";
import { readRows } from "../../harness/model/workload.ts";

vi.setConfig({ testTimeout: 180_000 });

it("a megabyte of mentions for 200 workers delays no other request (figures: make torture ARGS=--hostile) [BYT-4]", async () => {
  await using world = await World.serve({ env: { SVC_ENGINES__DEFAULT: "echo" } });
  const { server, api } = world;
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
  await waitUntilQuiet(api, 30_000);
  // An earlier version blocked the event loop for 13 seconds here.
  expect(Math.max(...times)).toBeLessThan(2_000);
  await server.end();
  const routed = await readRows<{ status: string }>(world.dataDir, "select status from inbound_message");
  expect(routed.map(({ status }) => status)).toEqual(Array(4).fill("bee_processed"));
});
