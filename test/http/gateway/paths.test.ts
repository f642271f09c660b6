import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { Upstream } from "../../harness/fakes/upstream.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { sendRaw } from "../../harness/service/raw_request.ts";
import { type ActiveRun, startRun } from "../../harness/service/run.ts";

const SECRET = "ghp-canary-0123456789";

let upstream: Upstream;
let app: App;
let run: ActiveRun;
let other: ActiveRun;

beforeAll(async () => {
  upstream = await Upstream.start();
  const github = {
    kind: "http" as const,
    secret: "github-key",
    upstream: `${upstream.url}/base`,
    header: "authorization: Bearer {secret}",
    allow: ["GET /repos/*/*/issues", "POST /graphql", "GET /files/**"],
  };
  app = await openApp({
    config: {
      engines: buildFakeEngines(),
      gateways: { github, elsewhere: { ...github, allow: ["GET /**"] } },
    },
  });
  await app.call("PUT /api/secrets/github-key", { value: SECRET });
  run = await startRun(app, ["*:*"]);
  await app.call(`PUT /api/workers/${run.workerId}`, { gateways: ["github"] });
  other = await startRun(app, ["*:*"], "Other");
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function get(target: string, headers: string[] = [`authorization: Bearer ${run.token}`], method = "GET") {
  return sendRaw(app.url, [`${method} ${target} HTTP/1.1`, ...headers]);
}

describe("a gateway", () => {
  it("adds the secret, keeps the base path and the query, and removes what could name another client or key", async () => {
    upstream.received.length = 0;
    upstream.answer = (_request, response) => {
      response.setHeader("set-cookie", "a=1");
      response.setHeader("x-kept", "yes");
      response.end("issues");
    };
    const answer = await get("/gateway/github/repos/a%20b/c/issues?q=%2e%2e/..&token=x", [
      `authorization: Bearer ${run.token}`,
      "x-api-key: other",
      "api-key: other",
      "x-goog-api-key: other",
      "cookie: a=1",
      "forwarded: for=1",
      "x-forwarded-for: 1.2.3.4",
      "x-http-method-override: DELETE",
      "x-method-override: DELETE",
      "x-original-url: /user",
      "x-rewrite-url: /user",
      "x-host: other",
      "x-real-ip: 1.2.3.4",
      "true-client-ip: 1.2.3.4",
      "via: 1.1 other",
      "traceparent: 00-1",
      "baggage: a=1",
      "x-own: yes",
    ]);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("x-kept: yes");
    expect(answer.text).not.toMatch(/set-cookie/i);
    const [received] = upstream.received;
    expect(received?.url).toBe("/base/repos/a%20b/c/issues?q=%2e%2e/..&token=x");
    expect(received?.headers).toEqual({
      authorization: `Bearer ${SECRET}`,
      host: new URL(upstream.url).host,
      connection: "keep-alive",
      "x-own": "yes",
    });
  });

  // Each of these could be read as another path than the one that was checked.
  it.each([
    "/gateway/github/repos/a/b/../../../user",
    "/gateway/github/repos/a/b/%2e%2e/issues",
    "/gateway/github/repos/a/./issues",
    "/gateway/github/repos/a/%2E/issues",
    "/gateway/github/repos/a//issues",
    "/gateway/github//repos/a/b/issues",
    "/gateway/github/repos/a/b/issues/",
    "/gateway/github/repos/a%2fb/c/issues",
    "/gateway/github/repos/a%2Fb/issues",
    "/gateway/github/repos/a%5cb/c/issues",
    "/gateway/github/repos/a\\b/c/issues",
    "/gateway/github/repos/a%00/c/issues",
    "/gateway/github/repos/a%/c/issues",
    "/gateway/github/repos/a%ff/c/issues",
    "/gateway/github/files/a#b",
    "/gateway/github/files/..;/user",
    "/gateway/github/files/..;a=b/user",
    "/gateway/github/files/%252e%252e/user",
    "/gateway/github/files/a%252Fb",
    "/gateway/github/repos/a/issues",
    "/gateway/github/repos/a/b/Issues",
    "/gateway/github/repos/a/b/issues/1",
    "/gateway/github/graphql",
    "/gateway/github",
    "/gateway/github/",
    "/gateway/github?x",
    "/gateway/github/..",
    "/gateway/github/../elsewhere/user",
    "/gateway/github/%2e%2e/elsewhere/user",
    "/gateway/../gateway/elsewhere/user",
    "/gateway/elsewhere/user",
    "/gateway/nothing/user",
    "/gateway/__proto__/user",
    "/gateway/",
    "/gateway",
  ])("refuses %s before it is sent [GTW-1]", async (target) => {
    upstream.received.length = 0;
    expect((await get(target)).status).toBe(403);
    expect(upstream.received).toEqual([]);
  });

  it("matches an absolute target by its path [GTW-1]", async () => {
    upstream.received.length = 0;
    expect((await get(`${app.url}/gateway/github/repos/a/b/%2e%2e`)).status).toBe(403);
    expect((await get(`${app.url}/gateway/github/repos/a/b/issues`)).status).toBe(200);
    expect((await get("http://169.254.169.254/gateway/github/repos/a/b/issues")).status).toBe(200);
    expect(upstream.received.map(({ url }) => url)).toEqual([
      "/base/repos/a/b/issues",
      "/base/repos/a/b/issues",
    ]);
  });

  it("accepts the token of a run only, as bearer or where providers' programs put a key [GTW-1]", async () => {
    const target = "/gateway/github/files/a";
    const status = async (...headers: string[]) => (await get(target, headers)).status;
    expect(await status(`authorization: Bearer ${run.token}`)).toBe(200);
    expect(await status(`x-api-key: ${run.token}`)).toBe(200);
    expect(await status(`api-key: ${run.token}`)).toBe(200);
    expect(await status()).toBe(401);
    expect(await status("authorization: Bearer nonsense")).toBe(401);
    expect(await status(`authorization: Bearer nonsense`, `x-api-key: ${run.token}`)).toBe(401);
    expect(await status("x-api-key: svc_gw_nonsense")).toBe(401);
    expect(await status(`authorization: Bearer ${await app.token()}`)).toBe(403);
    expect(await status(`authorization: Bearer ${other.token}`)).toBe(403);
    expect((await get(`${target}?token=${run.token}`, [])).status).toBe(401);
  });

  it("sends no length without a body, which would take the bytes of the next request", async () => {
    upstream.received.length = 0;
    upstream.answer = (_request, response) => void response.end("ok");
    const headers = [`authorization: Bearer ${run.token}`, "content-length: 40"];
    const body = "GET /base/secret HTTP/1.1\r\nhost: x\r\n\r\n.";
    expect((await sendRaw(app.url, ["GET /gateway/github/files/a HTTP/1.1", ...headers], body)).status).toBe(
      200,
    );
    expect((await get("/gateway/github/files/b")).status).toBe(200);
    expect(upstream.received.map(({ url, headers: got }) => [url, got["content-length"]])).toEqual([
      ["/base/files/a", undefined],
      ["/base/files/b", undefined],
    ]);
  });

  it("refuses an upgrade", async () => {
    const headers = [`authorization: Bearer ${run.token}`, "upgrade: websocket", "sec-websocket-version: 13"];
    expect((await get("/gateway/github/files/a", headers)).status).toBe(426);
  });

  it("passes a redirect on and does not follow it [GTW-1]", async () => {
    upstream.received.length = 0;
    upstream.answer = (_request, response) =>
      void response.writeHead(302, { location: "/base/secret" }).end();
    const answer = await get("/gateway/github/files/a");
    expect(answer.status).toBe(302);
    expect(answer.text).toContain("location: /base/secret");
    expect(upstream.received.length).toBe(1);
  });
});
