import http2 from "node:http2";
import { describe, expect, it } from "vitest";
import { UNKNOWN_BODIES_MAX_BYTES } from "../../../src/http/server/body_budget.ts";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { createUser } from "../../harness/model/people.ts";

const MIB = 1024 * 1024;
const platforms = { alerts: { kind: "webhook", worker: "Ada" } as never };
const encoder = new TextEncoder();

/** A client that sends the head of a request and then its body in pieces. */
class SlowClient {
  response = "";
  #connection: Deno.TcpConn;

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
    void this.#read();
  }

  static async open(app: App, path: string, headers: string[]): Promise<SlowClient> {
    const { host, hostname, port } = new URL(app.url);
    const client = new SlowClient(await Deno.connect({ hostname, port: Number(port) }));
    await client.send(
      encoder.encode(
        [`POST ${path} HTTP/1.1`, `host: ${host}`, "content-type: application/json", ...headers, "", ""].join(
          "\r\n",
        ),
      ),
    );
    return client;
  }

  async #read(): Promise<void> {
    const buffer = new Uint8Array(16_384);
    for (;;) {
      const size = await this.#connection.read(buffer).catch(() => null);
      if (size === null) return;
      this.response += new TextDecoder().decode(buffer.subarray(0, size));
    }
  }

  /** Sends all bytes. A closed connection is no error. */
  async send(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
    } catch { /* The service closed the connection. */ }
  }

  get status(): number {
    return Number(/^HTTP\/1.1 (\d+)/.exec(this.response)?.[1] ?? 0);
  }

  close(): void {
    try {
      this.#connection.close();
    } catch { /* The service closed the connection. */ }
  }
}

const logIn = (app: App) =>
  fetch(`${app.url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: PASSWORD }),
  });

/** Samples the bytes of all bodies until `stop`, and returns the highest value. */
function watchBytes(app: App): { stop: () => number } {
  let peak = 0;
  const timer = setInterval(() => peak = Math.max(peak, app.server.unknownBodies.bytes), 1);
  return { stop: () => (clearInterval(timer), Math.max(peak, app.server.unknownBodies.bytes)) };
}

describe("a body of /api/auth/* [AUT-5]", () => {
  it("has at most 16 KiB, on every route and in every encoding", async () => {
    await using app = await openApp();
    const { token } = await createUser(app, "Ada", "admin");
    const routes = ["login", "refresh", "logout", "console"];
    for (const route of routes) {
      const post = async (size: number, chunked: boolean) => {
        const bytes = encoder.encode(`{"x":"${"x".repeat(size - 8)}"}`);
        const body = chunked ? new Blob([bytes]).stream() : bytes;
        const response = await fetch(`${app.url}/api/auth/${route}`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
          body,
        });
        await response.body?.cancel();
        return response.status;
      };
      for (const chunked of [false, true]) {
        expect([route, chunked, await post(16 * 1024, chunked)]).toEqual([route, chunked, 400]);
        expect([route, chunked, await post(16 * 1024 + 1, chunked)]).toEqual([route, chunked, 413]);
        expect([route, chunked, await post(MIB, chunked)]).toEqual([route, chunked, 413]);
      }
    }
    expect(app.server.unknownBodies.bytes).toBe(0);
  });
});

describe("bodies of callers without a token [BYT-3]", () => {
  it("have one limit over all HTTP/1 connections; a login, and a caller with a token, still succeed", async () => {
    await using app = await openApp({ config: { platforms } });
    await app.call("POST /api/workers", { name: "Ada" });
    const watch = watchBytes(app);
    const head = [`content-length: ${MIB}`];
    const clients = await Promise.all(
      Array.from({ length: 60 }, () => SlowClient.open(app, "/hooks/alerts", head)),
    );
    await Promise.all(clients.map((client) => client.send(new Uint8Array(MIB - 1))));
    await expect.poll(() => clients.filter(({ status }) => status === 503).length).toBeGreaterThan(40);
    expect(app.server.unknownBodies.bytes).toBeGreaterThan(UNKNOWN_BODIES_MAX_BYTES / 2);
    expect((await logIn(app)).status).toBe(200);
    const { token } = await createUser(app, "Eve", "admin");
    const sent = await fetch(`${app.url}/hooks/alerts`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ id: "1", text: "x".repeat(200_000) }),
    });
    expect(sent.status).toBe(202);
    expect(watch.stop()).toBeLessThanOrEqual(UNKNOWN_BODIES_MAX_BYTES);
    for (const client of clients) client.close();
    await expect.poll(() => app.server.unknownBodies.bytes).toBe(0);
    const refused = clients.find(({ status }) => status === 503)?.response ?? "";
    expect(refused).toContain("too many bodies of clients without a token");
    expect(refused).toMatch(/retry-after: 1/i);
  });

  it("are counted when they come in pieces of one byte, without a length, or never end", async () => {
    await using app = await openApp({ config: { platforms } });
    const watch = watchBytes(app);
    const pieces = await SlowClient.open(app, "/hooks/alerts", ["transfer-encoding: chunked"]);
    await pieces.send(encoder.encode("1\r\nx\r\n".repeat(20_000)));
    await expect.poll(() => app.server.unknownBodies.bytes).toBeGreaterThanOrEqual(20_000);
    expect(app.server.unknownBodies.bytes).toBeLessThan(50_000);
    const over = await SlowClient.open(app, "/hooks/alerts", ["transfer-encoding: chunked"]);
    const piece = encoder.encode(`10000\r\n${"x".repeat(65_536)}\r\n`);
    for (let i = 0; i < 40; i++) await over.send(piece);
    await expect.poll(() => over.status).toBe(413);
    for (const client of [pieces, over]) client.close();
    await expect.poll(() => app.server.unknownBodies.bytes).toBe(0);
    expect(watch.stop()).toBeLessThanOrEqual(UNKNOWN_BODIES_MAX_BYTES);
  });

  it("are released after each answer: wrong signature, unknown hook, wrong password, no JSON", async () => {
    await using app = await openApp({ config: { platforms } });
    const requests: [string, string, number][] = [
      ["/hooks/alerts", JSON.stringify({ id: "1", text: "x".repeat(500_000) }), 401],
      ["/hooks/none", "x".repeat(500_000), 404],
      ["/api/auth/login", JSON.stringify({ username: "admin", password: "wrong" }), 401],
      ["/api/auth/refresh", "x".repeat(10_000), 400],
    ];
    for (let round = 0; round < 40; round++) {
      const [path, body, status] = requests[round % requests.length] ?? requests[0] ?? ["", "", 0];
      const response = await fetch(app.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      await response.body?.cancel();
      if (round < requests.length) expect([path, response.status]).toEqual([path, status]);
      expect(app.server.unknownBodies.bytes).toBe(0);
    }
  });

  it("over 250 streams of HTTP/2 are not accepted, because the service has no HTTP/2", async () => {
    await using app = await openApp({ config: { platforms } });
    const watch = watchBytes(app);
    for (const path of ["/api/auth/login", "/hooks/alerts"]) {
      const session = http2.connect(app.url);
      session.on("error", () => {});
      const closed = new Promise((resolve) => session.once("close", resolve));
      let accepted = 0;
      for (let i = 0; i < 250 && !session.destroyed; i++) {
        const stream = session.request({ ":method": "POST", ":path": path, "content-length": String(MIB) });
        stream.on("error", () => {});
        stream.on("response", () => accepted++);
        stream.write(new Uint8Array(MIB - 1), () => {});
      }
      await closed;
      expect([path, accepted]).toEqual([path, 0]);
    }
    expect(watch.stop()).toBe(0);
    expect((await fetch(`${app.url}/livez`)).status).toBe(200);
  });

  it("are not accepted after an upgrade to HTTP/2", async () => {
    await using app = await openApp();
    const client = await SlowClient.open(app, "/api/auth/login", [
      "connection: upgrade, http2-settings",
      "upgrade: h2c",
      "http2-settings: AAMAAABkAARAAAAAAAIAAAAA",
      "content-length: 2",
    ]);
    await client.send(encoder.encode("{}"));
    await expect.poll(() => client.status).toBe(400);
    client.close();
  });
});
