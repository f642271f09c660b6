// Invalid answers of platforms and proxies must not fail a reply, and every retry has a pause.
import { describe, expect, it } from "vitest";
import { Connection } from "../../src/platform/connection.ts";
import { keepConnected } from "../../src/platform/keep_connected.ts";
import { listen } from "../../src/platform/monitored_socket.ts";
import { parsePauseSeconds, parseRetryAfter } from "../../src/platform/retry_after.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";
import { buildDelivery, createPlatform } from "./worlds/open.ts";

const KEYS = {
  telegram: { token: "t" },
  slack: { app_token: "a", bot_token: "b" },
  feishu: { app_id: "a", app_secret: "s" },
  dingtalk: { client_id: "a", client_secret: "s" },
  discord: { token: "t" },
};
const DELIVERY = buildDelivery("x");

/** Starts a server with one answer to all requests. */
function answering(answer: () => Response) {
  let asked = 0;
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => {
    asked++;
    return answer();
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    asked: () => asked,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

describe.each(Object.entries(KEYS))("%s (contract 10.3)", (kind, keys) => {
  const create = (base_url: string) => createPlatform({ kind, ...keys, base_url });

  it("a limit with an unreadable time is a limit [PLT-3]", async () => {
    const headers = { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "x-ogw-ratelimit-reset": "soon" };
    await using server = answering(() => new Response("<html>", { status: 429, headers }));
    const platform = await create(server.url);
    for (let i = 0; i < 3; i++) {
      const fault = await platform.deliver(DELIVERY).catch((error) => error);
      expect(fault).toMatchObject({ why: "limited" });
      expect(fault.retryAfterMs === null || fault.retryAfterMs > 1_000).toBe(true);
    }
    expect(server.asked()).toBeLessThanOrEqual(3);
  });

  it("a connection that fails before TLS is complete has sent nothing [PLT-3]", async () => {
    using server = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const closing = (async () => {
      for await (const connection of server) connection.close();
    })();
    const address = `127.0.0.1:${server.addr.port}`;
    const encrypted = await create(`https://${address}`);
    await expect(encrypted.deliver(DELIVERY)).rejects.toMatchObject({ why: "unreachable" });
    server.close();
    await closing;
    const plain = await create(`http://${address}`);
    await expect(plain.deliver(DELIVERY)).rejects.toMatchObject({ why: "unreachable" });
  });

  it.each([["null", 502], ['{"message":"bad gateway"}', 502], ["<html>", 503]])(
    "the answer %s of a proxy is no refusal (%i) [PLT-3]",
    async (body, status) => {
      await using server = answering(() => new Response(body, { status }));
      const platform = await create(server.url);
      await expect(platform.deliver(DELIVERY)).rejects.toMatchObject({ why: "unreachable" });
    },
  );
});

it.each([
  [1.5, 1_500],
  ["2", 2_000],
  [0, 0],
  [-1, 0],
  [1e9, 86_400_000],
  ["", null],
  ["soon", null],
  [null, null],
  [undefined, null],
  [{}, null],
  [NaN, null],
])("parsePauseSeconds(%s) is %s", (seconds, ms) => {
  expect(parsePauseSeconds(seconds)).toBe(ms);
});

it.each<[string, Pick<Parameters<typeof keepConnected>[0], "session" | "classifyTrouble">]>([
  ["always asks for a new connection", {
    session: () => Promise.resolve(),
    classifyTrouble: () => ({ state: "down", pauseMs: null }),
  }],
  ["asks for no pause", {
    session: () => Promise.reject(new Error("limited")),
    classifyTrouble: () => ({ state: "limited", pauseMs: 0 }),
  }],
])(
  "keepConnected() pauses when a platform %s (contract 10.4)",
  async (_words, { session, classifyTrouble }) => {
    const clock = new TestClock();
    const stopped = new AbortController();
    let sessions = 0;
    const kept = keepConnected({
      connection: new Connection("there", clock),
      clock,
      signal: stopped.signal,
      retry: { firstMs: 500, lastMs: 60_000 },
      session: (resetBackoff) => {
        sessions++;
        return session(resetBackoff);
      },
      classifyTrouble,
    });
    const yieldOften = async () => {
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    };
    await yieldOften();
    clock.advance(499);
    await yieldOften();
    expect(sessions).toBe(1);
    clock.advance(1);
    await waitUntil("the next session", () => sessions === 2);
    stopped.abort();
    await kept;
  },
);

it("listen() ends a connection after a silence of 2.5 ping intervals (contract 10.4)", async () => {
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => Deno.upgradeWebSocket(request).response,
  );
  const clock = new TestClock();
  const connection = new Connection("there", clock);
  let said = "";
  void listen({
    ...{ platform: "There", url: `ws://127.0.0.1:${server.addr.port}`, clock, connection },
    ...{ signal: new AbortController().signal, pingMs: 10_000, ping: () => {}, isReadyWhenOpen: true },
    take: () => Promise.resolve(),
  }).catch((error) => said = error.message);
  await waitUntil("it is connected", () => connection.health.state === "connected");
  await waitUntil("the connection ends", () => {
    clock.advance(1_000);
    return said !== "";
  });
  expect(said).toBe("There was silent for 25 s");
});

it.each([
  ["120", 120_000],
  ["Mon, 05 Jan 2026 08:02:00 GMT", 120_000],
  ["Mon, 05 Jan 2026 07:00:00 GMT", 0],
  ["soon", null],
  [undefined, null],
])("Retry-After: %s is %s ms", (header, ms) => {
  expect(parseRetryAfter(header, Date.parse("2026-01-05T08:00:00Z"))).toBe(ms);
});
