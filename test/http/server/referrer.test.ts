import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { createUser } from "../../harness/model/people.ts";
import { answerAsStandby } from "../../../src/http/server/standby.ts";
import { bindPort } from "../../../src/http/server/listener.ts";

const POLICY = "no-referrer";

/** Sends raw bytes and returns the head of the response. */
async function exchangeRaw(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(request));
  const buffer = new Uint8Array(4_096);
  const size = await connection.read(buffer);
  return new TextDecoder().decode(buffer.subarray(0, size ?? 0));
}

describe("Referrer-Policy of a request with a token in its address [SEC-1]", () => {
  it("is no-referrer in every kind of answer", async () => {
    await using app = await openApp();
    const { token } = await createUser(app, "Ada", "admin");
    const { id } = await app.call("POST /api/local/sessions");
    const paths: [string, number][] = [
      ["/api/workers", 200],
      ["/api/workers?page_size=0", 400],
      ["/api/nothing", 404],
      ["/nothing.html", 404],
      [`/api/workers/${crypto.randomUUID()}`, 404],
      ["/api/events", 200],
      [`/api/local/sessions/${id}/stream`, 200],
      ["/", 200],
      ["/console/workers", 200],
      ["/docs", 200],
      ["/openapi.json", 200],
      ["/livez", 200],
      ["/readyz", 200],
      ["/metrics", 200],
      ["/mcp", 405],
      ["/api/auth/oidc/start", 404],
      ["/api/auth/oidc/callback", 404],
    ];
    for (const [path, status] of paths) {
      const response = await fetch(`${app.url}${path}${path.includes("?") ? "&" : "?"}token=${token}`);
      await response.body?.cancel();
      expect([path, response.status, response.headers.get("referrer-policy")]).toEqual([
        path,
        status,
        POLICY,
      ]);
    }
    const others: [string, RequestInit, number][] = [
      [`/api/workers?token=wrong`, {}, 401],
      [`/api/workers?%74oken=${token}`, {}, 200],
      [`/api/workers?token=a&token=b`, {}, 401],
      [`/api/workers?token=${token}`, { method: "DELETE" }, 405],
      [`/api/workers?token=${token}`, { method: "HEAD" }, 200],
      [
        `/api/workers?token=${token}`,
        { method: "POST", body: "x", headers: { "content-type": "text/csv" } },
        415,
      ],
      [`/hooks/x?token=${token}`, { method: "POST", body: "{}" }, 404],
      [`/api/auth/login?token=${token}`, { method: "POST", body: "x".repeat(2 ** 21) }, 413],
    ];
    for (const [path, init, status] of others) {
      const response = await fetch(app.url + path, init);
      await response.body?.cancel();
      expect([path, response.status, response.headers.get("referrer-policy")]).toEqual([
        path,
        status,
        POLICY,
      ]);
    }
  });

  it("is no-referrer in answers without the application: bad host, bad headers, limit, standby", async () => {
    await using app = await openApp({ config: { server: { max_connections_per_address: 2 } } });
    const get = "GET /api/workers?token=x HTTP/1.1\r\n";
    const requests: [string, RegExp][] = [
      [`${get}host: evil.example\r\n\r\n`, /^HTTP\/1.1 403 /],
      [`${get}host: a b\r\n\r\n`, /^HTTP\/1.1 400 /],
      [`${get}host: localhost\r\nx: ${"x".repeat(100_000)}\r\n\r\n`, /^HTTP\/1.1 431 /],
      [`${get}host: localhost\r\nbad header\r\n\r\n`, /^HTTP\/1.1 400 /],
      [`${get}host: localhost\r\ncontent-length: x\r\n\r\n`, /^HTTP\/1.1 400 /],
    ];
    for (const [request, status] of requests) {
      const answer = await exchangeRaw(app.url, request);
      expect([request.slice(0, 80), answer]).toEqual([request.slice(0, 80), expect.stringMatching(status)]);
      expect([request.slice(0, 80), answer]).toEqual([
        request.slice(0, 80),
        expect.stringMatching(/referrer-policy: no-referrer/i),
      ]);
    }
    const many = await exchangeRaw(app.url, `${get}host: localhost\r\n\r\n`.repeat(9));
    expect(many).toMatch(/referrer-policy: no-referrer/i);
    const path = await Deno.makeTempFile({ prefix: "svc-test-" });
    const port = bindPort({ host: "127.0.0.1", port: 0 });
    const standby = answerAsStandby(port, { total: 10, perAddress: 10, proxies: [] }, {
      path,
      instance: "x",
    });
    for (const way of ["/livez", "/readyz", "/api/workers", "/"]) {
      const response = await fetch(`http://127.0.0.1:${standby.addr.port}${way}?token=x`);
      await response.body?.cancel();
      expect([way, response.headers.get("referrer-policy")]).toEqual([way, POLICY]);
    }
    await standby.close(0);
    await Deno.remove(path);
  });
});
