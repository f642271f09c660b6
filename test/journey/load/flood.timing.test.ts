import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import type { ServerProcess } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { startRun } from "../../harness/model/workload.ts";

// The long run: SVC_TEST_FLOOD_MB=1000 SVC_TEST_READERS=100.
const FLOOD_MB = Number(Deno.env.get("SVC_TEST_FLOOD_MB") ?? 100);
const READERS = Number(Deno.env.get("SVC_TEST_READERS") ?? 20);
const LOG_MB = 100;

/** Measures a server's peak memory until stopped. */
function watchMemory(server: ServerProcess): { stop: () => number } {
  let most = 0;
  const timer = setInterval(() => void server.memory().then((bytes) => most = Math.max(most, bytes)), 50);
  return {
    stop() {
      clearInterval(timer);
      return most;
    },
  };
}

vi.setConfig({ testTimeout: 180_000 + FLOOD_MB * 300 });

it(`an agent that prints ${FLOOD_MB} MB costs no memory, its log is cut with a notice, and other clients are served [CHD-6]`, async () => {
  await using world = await World.serve({ env: { SVC_LIMITS__MAX_LOG_BYTES: "1000000" } });
  const { server, api } = world;
  const warm = await startRun(api, "flood 50000000");
  await waitUntil("the first run ends", warm.ended, 60_000);
  const before = await server.memory();
  const watch = watchMemory(server);
  const run = await startRun(api, `flood ${FLOOD_MB * 1_000_000}`);
  const times: number[] = [];
  while (!await run.ended()) {
    const started = performance.now();
    await api.call("GET /api/workers?page_size=10");
    times.push(performance.now() - started);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Far less than the agent printed. The collector's schedule is unknown.
  expect(watch.stop() - before).toBeLessThan(80e6);
  times.sort((a, b) => a - b);
  expect(times.length).toBeGreaterThan(3);
  expect(times[Math.floor(times.length * 0.99)]).toBeLessThan(250);
  const log = await api.text(`/api/executions/${run.id}/logs`);
  expect(log.length).toBeLessThan(1_001_000);
  expect(log).toMatch(/\[log cut: it reached limits\.max_log_bytes, 1000000 bytes\]\n$/);
  const [execution] = await api.call("GET /api/executions?page_size=1");
  expect(execution).toMatchObject({ id: run.id, status: "completed" });
  expect(execution.result).toMatch(/\[cut: \d+ bytes in all, the log has more\]$/);
});

it(`${READERS} slow readers of a log of ${LOG_MB} MB cost no memory and delay no other client [BKP-3]`, async () => {
  await using world = await World.serve();
  const { server, api } = world;
  const run = await startRun(api, "ok");
  await waitUntil("the run ends", run.ended);
  const path = join(world.dataDir, "logs", run.id.slice(-2), `${run.id}.log`);
  const file = await Deno.open(path, { write: true, truncate: true });
  const block = new TextEncoder().encode(`${"x".repeat(99)}\n`.repeat(10_000));
  for (let i = 0; i < LOG_MB; i++) await file.write(block);
  file.close();
  await api.text(`/api/executions/${run.id}/logs?tail=1`);
  // The first large response makes the process grow once (decision 0030). Concurrent readers must not add
  // to that.
  await fetch(`${server.url}/api/executions/${run.id}/logs`, {
    headers: { authorization: `Bearer ${api.token}` },
  })
    .then((response) => response.bytes());
  const before = { memory: await server.memory(), descriptors: server.descriptors() };
  const watch = watchMemory(server);
  const { hostname, port } = new URL(server.url);
  const request = new TextEncoder().encode(
    `GET /api/executions/${run.id}/logs HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${api.token}\r\n\r\n`,
  );
  const readers = await Promise.all(Array.from({ length: READERS }, async () => {
    const connection = await Deno.connect({ hostname, port: Number(port) });
    await connection.write(request);
    return connection;
  }));
  const times: number[] = [];
  const small = new Uint8Array(1_024);
  for (let round = 0; round < 30; round++) {
    for (const reader of readers) await reader.read(small);
    const started = performance.now();
    await api.call("GET /api/workers");
    times.push(performance.now() - started);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(watch.stop() - before.memory).toBeLessThan(50e6);
  expect(times.sort((a, b) => a - b)[28]).toBeLessThan(250);
  for (const reader of readers) reader.close();
  // Each reader had a file and a connection. A process that waits for the next run may have added four
  // descriptors.
  await waitUntil(
    "files and connections are closed",
    () => server.descriptors() <= before.descriptors + 6,
  );
});
