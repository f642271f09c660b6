import http2 from "node:http2";
import { expect, it } from "vitest";
import { getConnectionsMax } from "../../../src/base/open_files.ts";
import { Connections } from "../../../src/http/server/connections.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import type { Client } from "../../harness/service/client.ts";
import { type ServerProcess, SVC } from "../../harness/service/process.ts";
import { World } from "../../harness/model/scenario.ts";
import { startRun } from "../../harness/service/run.ts";
import { waitUntil } from "../../harness/wait.ts";
import { createTask } from "../../harness/service/runner.ts";

/** Returns the command for `svc serve` with a hard limit of open files. */
function buildLimitedCommand(files: number): string[] {
  return ["bash", "-c", `ulimit -n ${files}; exec "$0" "$@"`, ...SVC];
}

interface Idle {
  connections: Deno.TcpConn[];
  /** The number of connections that the server has closed. */
  closed: number;
  /** The number of refused connections. */
  refused: number;
}

async function openIdle(server: ServerProcess | { url: string }, count: number): Promise<Idle & Disposable> {
  const { hostname, port } = new URL(server.url);
  const idle: Idle = { connections: [], closed: 0, refused: 0 };
  for (let i = 0; i < count; i++) {
    const connection = await Deno.connect({ hostname, port: Number(port) }).catch(() => null);
    if (connection === null) idle.refused++;
    else {
      idle.connections.push(connection);
      void connection.read(new Uint8Array(1)).then(() => idle.closed++, () => idle.closed++);
    }
  }
  return Object.assign(idle, {
    [Symbol.dispose]() {
      for (const connection of idle.connections) connection.close();
    },
  });
}

async function runOnce(api: Client, name: string): Promise<void> {
  const worker = await api.call("POST /api/workers", { name });
  const task = await createTask(api, worker.id, "say hello");
  const done = await api.call(`GET /api/tasks/${task}/wait?timeout_ms=10000`);
  expect(done.status).toBe("completed");
}

it("1,100 idle connections with a limit of 1,024 files: other clients are served, and runs have their files [BYT-3]", async () => {
  await using world = await World.serve({
    program: buildLimitedCommand(1_024),
    env: { SVC_SERVER__MAX_CONNECTIONS: "5000", SVC_SERVER__MAX_CONNECTIONS_PER_ADDRESS: "5000" },
  });
  const { server, api } = world;
  using _idle = await openIdle(server, 1_100);
  expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  await runOnce(api, "Ada");
  expect(server.descriptors()).toBeLessThan(700);
  expect((await server.end()).code).toBe(0);
});

it("a limit of 60 files leaves few connections, which are never all taken [BYT-3]", async () => {
  await using world = await World.serve({ program: buildLimitedCommand(60) });
  const { server, api } = world;
  const stream = await api.stream((await api.call("POST /api/local/sessions")).id);
  {
    using _idle = await openIdle(server, 90);
    await waitUntil("the service logs the full limit", () => server.stderr.includes("Too many connections"));
    expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  }
  expect(stream.ended).toBe(false);
  await stream.close();
  expect((await server.end()).code).toBe(0);
});

it("missing files for new connections end nothing: the service pauses and continues to accept [BYT-3]", async () => {
  const real = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let failures = 2;
  const listener = {
    addr: real.addr,
    close: () => real.close(),
    accept: () =>
      failures-- > 0 ? Promise.reject(new Error("Too many open files (os error 24)")) : real.accept(),
  } as unknown as Deno.TcpListener;
  const connections = new Connections(listener, { total: 10, perAddress: 10, proxies: [] }, {
    handle: () => Promise.resolve(new Response("here")),
    onError: () => new Response(null, { status: 500 }),
    onFull: () => new Response(null, { status: 503 }),
  });
  const started = performance.now();
  expect(await (await fetch(`http://127.0.0.1:${real.addr.port}`)).text()).toBe("here");
  expect(performance.now() - started).toBeGreaterThanOrEqual(190);
  await connections.close(1_000);
  expect(connections.size).toBe(0);
});

it("clients that disconnect while the service closes their connections for others end nothing [BYT-3]", async () => {
  await using world = await World.serve({ env: { SVC_SERVER__MAX_CONNECTIONS: "20" } });
  const { server } = world;
  const { port } = new URL(server.url);
  const until = performance.now() + 2_000;
  const come = async () => {
    while (performance.now() < until) {
      const open = await Promise.all(
        Array.from({ length: 30 }, () => Deno.connect({ port: Number(port) }).catch(() => null)),
      );
      for (const connection of open) connection?.close();
    }
  };
  await Promise.all(Array.from({ length: 8 }, come));
  expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  expect(server.stderr).not.toContain("Stopping after an uncaught error");
  expect((await server.end()).code).toBe(0);
});

it("a share of the allowed open files is reserved", () => {
  expect([60, 108, 256, 1_024, 20_000, Infinity].map(getConnectionsMax)).toEqual([
    8,
    8,
    153,
    614,
    12_000,
    Infinity,
  ]);
});

it("an address has a limit of connections, and the longest idle one gives way; a used one never does", async () => {
  await using app = await openApp({ config: { server: { max_connections_per_address: 8 } } });
  const { id } = await app.call("POST /api/local/sessions");
  const headers = { authorization: `Bearer ${await app.token()}` };
  const open = await fetch(`${app.url}/api/local/sessions/${id}/stream`, { headers });
  const reader = open.body?.getReader();
  await reader?.read();
  using idle = await openIdle(app, 30);
  await waitUntil("the longest idle connections are closed", () => idle.closed >= 30 - 8);
  expect(idle.refused).toBe(0);
  expect((await fetch(`${app.url}/livez`)).status).toBe(200);
  await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
  const { value } = await reader?.read() ?? {};
  expect(new TextDecoder().decode(value)).toContain("event: status");
  await reader?.cancel();
});

it("a new connection is closed if all are used, unless it comes from a proxy of many clients", async () => {
  for (const [proxies, expected] of [[[], "closed"], [["127.0.0.1"], 200]] as const) {
    await using app = await openApp({
      config: { server: { max_connections_per_address: 2, trusted_proxies: [...proxies] } },
    });
    const { id } = await app.call("POST /api/local/sessions");
    const headers = { authorization: `Bearer ${await app.token()}` };
    const path = `${app.url}/api/local/sessions/${id}/stream`;
    const streams = [await fetch(path, { headers }), await fetch(path, { headers })];
    const asked = await fetch(`${app.url}/livez`).then((answer) => answer.status, () => "closed");
    expect(asked).toBe(expected);
    await Promise.all(streams.map((stream) => stream.body?.cancel()));
  }
});

it("a connection without a valid token gives way in any state [BYT-3]", async () => {
  await using app = await openApp({ config: { server: { max_connections_per_address: 8 } } });
  const { id } = await app.call("POST /api/local/sessions");
  const headers = { authorization: `Bearer ${await app.token()}` };
  const stream = await fetch(`${app.url}/api/local/sessions/${id}/stream`, { headers });
  const reader = stream.body?.getReader();
  await reader?.read();
  using idle = await openIdle(app, 7);
  const body = "POST /api/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{";
  const unread = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
  for (const [index, connection] of idle.connections.entries()) {
    void connection.write(new TextEncoder().encode(index % 2 === 0 ? body : unread)).catch(() => {});
  }
  await waitUntil("new clients get a response", async () => {
    const asked = Array.from(
      { length: 3 },
      () => fetch(`${app.url}/livez`).then(({ status }) => status, () => 0),
    );
    return (await Promise.all(asked)).every((status) => status === 200);
  });
  await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain("event: status");
  await reader?.cancel();
});

it("an agent that opens more streams than allowed affects only itself [BYT-3]", async () => {
  await using app = await openApp({
    config: { server: { max_connections_per_address: 8 }, engines: buildFakeEngines() },
  });
  const run = await startRun(app, ["read:*"]);
  const { id } = await app.call("POST /api/local/sessions");
  const open = async (path: string, headers: Record<string, string>) => {
    const answer = await fetch(app.url + path, { headers: { ...headers, accept: "text/event-stream" } });
    const reader = answer.body?.getReader();
    const stream = { ended: false, cancel: () => reader?.cancel().catch(() => {}) };
    await reader?.read();
    void (async () => {
      while (await reader?.read().then(({ done }) => !done, () => false));
      stream.ended = true;
    })();
    return stream;
  };
  const person = { authorization: `Bearer ${await app.token()}` };
  const mine = await open(`/api/local/sessions/${id}/stream`, person);
  const agents: Awaited<ReturnType<typeof open>>[] = [];
  for (let i = 0; i < 20; i++) agents.push(await open("/api/events", run.headers));
  for (let i = 0; i < 5; i++) agents.push(await open(`/api/local/sessions/${id}/stream`, person));
  await waitUntil(
    "the streams of the agent are closed",
    () => agents.slice(0, 15).every(({ ended }) => ended),
  );
  expect(agents.slice(20).concat(mine).map(({ ended }) => ended)).toEqual(Array(6).fill(false));
  for (const { cancel } of agents.concat(mine)) await cancel();
});

it("a runner that uses every connection affects only itself [BYT-3]", async () => {
  await using app = await openApp({ config: { server: { max_connections_per_address: 8 } } });
  const { token } = await app.call("POST /api/runners", { name: "r1" });
  const person = { authorization: `Bearer ${await app.token()}` };
  const { host, hostname, port } = new URL(app.url);
  const head = [
    `POST /api/runs/${crypto.randomUUID()}/end HTTP/1.1`,
    `host: ${host}`,
    `authorization: Bearer ${token}`,
    "content-type: application/json",
    "content-length: 4000000",
  ];
  const held: Deno.TcpConn[] = [];
  for (let i = 0; i < 20; i++) {
    const one = await Deno.connect({ hostname, port: Number(port) });
    await one.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n{`)).catch(() => {});
    held.push(one);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const answer = await fetch(`${app.url}/api/workers`, { headers: person }).catch(() => null);
  await answer?.body?.cancel();
  for (const one of held) one.close();
  expect(answer?.status).toBe(200);
});

it("pipelined requests count like connections, and those over the limit get 503 [BYT-3]", async () => {
  await using app = await openApp({ config: { server: { max_connections_per_address: 8 } } });
  const { host, hostname, port } = new URL(app.url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const request = `GET /livez HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
  await connection.write(new TextEncoder().encode(request.repeat(20)));
  let answers = "";
  const buffer = new Uint8Array(4_096);
  const statuses = () => [...answers.matchAll(/HTTP\/1.1 (\d+) /g)].map(([, status]) => Number(status));
  while (statuses().length < 20) {
    const size = await connection.read(buffer);
    if (size === null) break;
    answers += new TextDecoder().decode(buffer.subarray(0, size));
  }
  expect(statuses().filter((status) => status === 200)).toHaveLength(8);
  expect(statuses().filter((status) => status === 503)).toHaveLength(12);
  await waitUntil("all requests have ended", async () => (await fetch(`${app.url}/livez`)).status === 200);
});

it("HTTP/2 is refused: its connection is closed", async () => {
  await using app = await openApp();
  const session = http2.connect(app.url);
  session.on("error", () => {});
  await new Promise((resolve) => session.once("close", resolve));
  expect((await fetch(`${app.url}/livez`)).status).toBe(200);
});
