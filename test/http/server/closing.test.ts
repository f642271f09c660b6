import { join } from "node:path";
import { expect, it } from "vitest";
import type { App } from "../../../src/http/app_types.ts";
import { bindPort, Listener } from "../../../src/http/server/listener.ts";
import { createTempDir } from "../../harness/service/process.ts";

const ANSWER_MS = 40;

it("a stop waits for earlier requests, but not for the later requests of busy clients [SHD-5]", async () => {
  await using folder = await createTempDir();
  let asked = 0;
  let answered = 0;
  const answer = async () => {
    asked++;
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    answered++;
    return new Response();
  };
  const app = { fetch: answer } as unknown as App;
  const port = bindPort({ host: "127.0.0.1", port: 0 });
  const listener = new Listener(app, {
    ...{ port, taken: null, trusted_proxies: [], max_connections: 10, max_connections_per_address: 10 },
  }, { path: join(folder.path, "server.json"), instance: "one" });
  let ended = false;
  const ask = async () => {
    while (!ended) await listener.handle(new Request("http://127.0.0.1/"), "127.0.0.1");
  };
  const clients = [ask()];
  await new Promise((resolve) => setTimeout(resolve, ANSWER_MS / 2));
  // At any time, one of the two clients waits for a response.
  clients.push(ask());
  const before = asked;
  await listener.close();
  expect(answered).toBeGreaterThanOrEqual(before);
  expect(asked - before).toBeLessThan(50);
  ended = true;
  await Promise.all(clients);
});

const AT_ONCE = 700;

it("simultaneous clients connect without a retry while the service is busy [BYT-3]", async () => {
  const most = Number(await Deno.readTextFile("/proc/sys/net/core/somaxconn").catch(() => "128"));
  using port = bindPort({ host: "127.0.0.1", port: 0 });
  const started = performance.now();
  const coming = Array.from(
    { length: Math.min(AT_ONCE, most) },
    () => Deno.connect({ ...port.addr, transport: "tcp" }),
  );
  const connections = await Promise.all(coming);
  // The kernel of a refused client retries after 1 s, then after 3.
  expect(performance.now() - started).toBeLessThan(3_000);
  for (const connection of connections) connection.close();
});
