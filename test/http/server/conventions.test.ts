import { describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/http/app.ts";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { readAll } from "../requests.ts";
import { TestClock } from "../../harness/clock.ts";

describe("wire conventions (contract 1)", () => {
  it("every error is a problem document with a request id [SEC-6]", async () => {
    await using app = await openApp();
    const replies = {
      400: await app.send("POST /api/workers", {}),
      401: await app.send("GET /api/workers", undefined, { authorization: "" }),
      404: await app.send(`GET /api/workers/${crypto.randomUUID()}`),
      405: await app.send("DELETE /api/workers"),
      413: await app.send("POST /api/workers", { name: "x".repeat(1024 * 1024) }),
      415: await app.send("POST /api/workers", "name=x", { "content-type": "text/plain" }),
    };
    for (const [status, reply] of Object.entries(replies)) {
      expect(reply.status).toBe(Number(status));
      expect(reply.headers.get("content-type")).toBe("application/problem+json");
      expect(reply.body).toMatchObject({
        type: expect.stringContaining("about:blank"),
        title: expect.any(String),
        status: Number(status),
        detail: expect.any(String),
        code: expect.any(String),
        request_id: reply.headers.get("x-request-id"),
      });
    }
    expect(replies[405].headers.get("allow")).toBe("POST, GET");
    expect(replies[401].headers.get("www-authenticate")).toBe("Bearer");
  });

  it("accepts a valid request id and replaces others", async () => {
    await using app = await openApp();
    const idOf = async (id: string) =>
      (await app.send("GET /api/workers", undefined, { "x-request-id": id })).headers.get("x-request-id");
    expect(await idOf("abc-1.2:3")).toBe("abc-1.2:3");
    for (const odd of ["", "a b", "x".repeat(101), "<script>"]) {
      expect(await idOf(odd)).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it("refuses unknown parameters and fields, and lists the known ones", async () => {
    await using app = await openApp();
    const query = await app.send("GET /api/workers?nmae=x");
    expect(query.body).toMatchObject({
      code: "invalid_request",
      errors: [{
        path: "nmae",
        message: expect.stringContaining("department, recursive, no_recursive, name, "),
      }],
    });
    const body = await app.send("POST /api/workers", { name: "x", nmae: "y" });
    expect(body.body.errors).toEqual([{ path: "nmae", message: expect.stringContaining("known: name,") }]);
    expect((await app.send("GET /api/workers/:id?page=1".replace(":id", crypto.randomUUID()))).status).toBe(
      400,
    );
  });

  it("pages by number and by the cursor of Link, with a total", async () => {
    await using app = await openApp();
    const made: string[] = [];
    for (let i = 0; i < 7; i++) made.unshift((await app.call("POST /api/workers", { name: `w${i}` })).id);
    const ids = (body: { id: string }[]) => body.map((worker) => worker.id);
    const second = await app.send("GET /api/workers?page=2&page_size=3");
    expect(ids(second.body)).toEqual(made.slice(3, 6));
    expect(second.headers.get("x-total-count")).toBe("7");

    const { rows, totals } = await readAll(app, "/api/workers?page_size=3");
    expect([ids(rows), totals]).toEqual([made, ["7", "7", "7"]]);
    const withToken = await app.send("GET /api/workers?page_size=3&token=secret");
    expect(withToken.headers.get("link")).not.toContain("secret");
    expect((await app.send("GET /api/workers?page=4&page_size=3")).body).toEqual([]);
  });

  it("accepts a missing body as {} if no field is required, and never a malformed body", async () => {
    await using app = await openApp();
    expect((await app.send("POST /api/local/sessions")).status).toBe(201);
    const bodies = [
      "{",
      "[]",
      "null",
      '"x"',
      "1",
      '{"name":1}',
      "\u0000",
      '{"name":null}',
      '{"name":"a","name":}',
    ];
    for (const body of bodies) {
      const reply = await app.send("POST /api/workers", body);
      expect(reply.status, body).toBe(400);
    }
    const response = await fetch(`${app.url}/api/workers`, {
      method: "POST",
      headers: { authorization: `Bearer ${await app.token()}`, "content-type": "application/json" },
      body: new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]),
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining("UTF-8") });
    expect(await app.call("GET /api/workers")).toEqual([]);
  });

  it("counts text limits in bytes: below, at and above the limit (contract 1)", async () => {
    await using app = await openApp();
    const status = async (body: object) => (await app.send("POST /api/workers", body)).status;
    expect(await status({ name: "x".repeat(199) })).toBe(201);
    expect(await status({ name: "x".repeat(200) })).toBe(201);
    expect(await status({ name: "x".repeat(201) })).toBe(400);
    expect(await status({ name: "ü".repeat(100) })).toBe(201);
    expect(await status({ name: "ü".repeat(101) })).toBe(400);
    expect(await status({ name: "a", description: "x".repeat(4_000) })).toBe(201);
    expect(await status({ name: "a", description: "x".repeat(4_001) })).toBe(400);
    expect(await status({ name: "a", memory: "x".repeat(262_144) })).toBe(201);
    expect(await status({ name: "a", memory: "x".repeat(262_145) })).toBe(400);
    expect(await status({ name: "" })).toBe(400);
    expect(await status({ name: "  " })).toBe(400);
    expect(await status({ name: "a\nb" })).toBe(400);
    expect(await status({ name: "a", description: "nul \0" })).toBe(400);
  });

  it("describes a faulty field, and names the object of a malformed id", async () => {
    await using app = await openApp();
    const worker_id = crypto.randomUUID();
    const task = { message_id: "m", worker_id, instruction: "x", type: "immediate" };
    const cases: [string, unknown, string][] = [
      ["POST /api/workers", {}, "name: is missing"],
      ["POST /api/workers", { name: 5 }, "name: must be a string"],
      ["POST /api/workers", { name: "x", description: null }, "description: must be a string"],
      ["POST /api/workers", { name: "x", paused: "yes" }, "paused: must be true or false"],
      ["POST /api/workers", { name: "x", scopes: "read:workers" }, "scopes: must be a list"],
      ["POST /api/workers", { name: "x", engine_args: [] }, "engine_args: must be an object"],
      ["POST /api/workers", [], "the input must be an object"],
      ["POST /api/departments", { name: "x", sort_order: 0.5 }, "sort_order: must be an integer"],
      ["POST /api/tasks", { ...task, scheduled_at: -1 }, "scheduled_at: must be at least 0"],
      [
        `GET /api/tasks?worker_id=${worker_id}&type=later`,
        undefined,
        "type.0: must be one of immediate, countdown, scheduled",
      ],
      ["GET /api/memory", undefined, "scope: is missing"],
      ["GET /api/memory?scope=a&scope=b", undefined, "scope: must be one string"],
      ["GET /api/workers?id=", undefined, "id.0: must not be empty"],
      ["GET /api/workers/zz/executions", undefined, 'Cannot find worker "zz": no such worker'],
      ["GET /api/executions/zz/logs", undefined, 'Cannot find execution "zz": no such execution'],
      ["DELETE /api/contexts/zz?session_key=k", undefined, 'Cannot find worker "zz": no such worker'],
      ["GET /api/local/sessions/zz/stream", undefined, 'Cannot find session "zz": no such session'],
      ["POST /api/tasks/zz/cancel", undefined, 'Cannot find task "zz": no such task'],
    ];
    for (const [route, body, detail] of cases) {
      const status = detail.startsWith("Cannot find") ? 404 : 400;
      expect(await app.send(route, body), route).toMatchObject({ status, body: { detail } });
    }
  });

  it("stores text unchanged, or refuses it: no half surrogate pairs, no invisible names", async () => {
    await using app = await openApp();
    // U+200D is invisible and joins emoji (contract 8.1).
    const joined = "\ud83d\udc69\u200d\ud83d\udcbb";
    const bad = ["\ud800", "a\udc00", "\u200b", "\ufeff \u2060", "a\u0085b", "a\u009bb", "a\u2028b", joined];
    for (const name of bad) {
      const reply = await app.send("POST /api/workers", { name });
      expect([reply.status, reply.body.errors?.[0].path], JSON.stringify(name)).toEqual([400, "name"]);
    }
    const half = { scope: "global", key: "k", value: "\ud83d" };
    expect((await app.send("PUT /api/memory/entry", half)).body.errors[0].path).toBe("value");
    for (const name of ["\ud83d\ude00", "Zoë"]) {
      const worker = await app.call("POST /api/workers", { name });
      expect((await app.call(`GET /api/workers/${worker.id}`)).name).toBe(name);
    }
  });

  it("repeats the response for an Idempotency-Key, and refuses the key with another body (contract 1)", async () => {
    await using app = await openApp();
    const key = { "idempotency-key": "k-1" };
    const first = await app.send("POST /api/workers", { name: "Ada" }, key);
    const again = await app.send("POST /api/workers", { name: "Ada" }, key);
    expect(again.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect((await app.send("POST /api/workers", { name: "Bob" }, key)).status).toBe(409);
    expect((await app.send("POST /api/local/sessions", { name: "Ada" }, key)).status).toBe(201);
    for (const odd of ["a b", "x".repeat(201), "ü"]) {
      const reply = await app.send("POST /api/workers", { name: "Ada" }, {
        "idempotency-key": encodeURI(odd) === odd ? odd : odd.replace("ü", "\u00fc"),
      });
      expect(reply.status, odd).toBe(400);
    }
    expect(await app.call("GET /api/workers")).toHaveLength(1);
  });

  it("creates a task and a message once per Idempotency-Key (contract 1)", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const session = `/api/local/sessions/${(await app.call("POST /api/local/sessions")).id}`;
    const { message_id } = await app.call(`POST ${session}/messages`, { content: "hello" });
    await app.settle();
    const creations = [
      ["POST /api/tasks", { message_id, worker_id, instruction: "x", type: "scheduled", cron: "0 0 1 1 *" }],
      [`POST ${session}/messages`, { content: "once" }],
      ["POST /api/messages", { message_id, content: "once" }],
    ] as const;
    for (const [route, body] of creations) {
      const first = await app.send(route, body, { "idempotency-key": "k" });
      const again = await app.send(route, body, { "idempotency-key": "k" });
      expect([route, again.body, again.headers.get("idempotent-replayed")]).toEqual([
        route,
        first.body,
        "true",
      ]);
    }
    expect(await app.call(`GET /api/tasks?worker_id=${worker_id}&type=scheduled`)).toHaveLength(1);
    expect(await app.call("GET /api/messages/inbound")).toHaveLength(2);
    expect(await app.call("GET /api/messages/outbound?source_type=system")).toHaveLength(1);
  });

  it("creates one object from simultaneous requests with one key [DUR-2]", async () => {
    await using app = await openApp();
    const replies = await Promise.all(
      Array.from(
        { length: 20 },
        () => app.send("POST /api/workers", { name: "Ada" }, { "idempotency-key": "once" }),
      ),
    );
    expect(new Set(replies.map((reply) => reply.body.id)).size).toBe(1);
    expect(await app.call("GET /api/workers")).toHaveLength(1);
    const made = [...Deno.readDirSync(app.server.parts.paths.workers)].map((entry) => entry.name);
    expect(made).toEqual([replies[0]?.body.id]);
  });

  it("a key expires after a day, even before retention runs (contract 1)", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const key = { "idempotency-key": "daily" };
    const first = await app.call("POST /api/workers", { name: "Ada" }, key);
    clock.jump(clock.now() + 24 * 60 * 60 * 1000);
    const second = await app.send("POST /api/workers", { name: "Bob" }, key);
    expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([201, null]);
    const again = await app.call("POST /api/workers", { name: "Bob" }, key);
    expect([again.id === second.body.id, again.id === first.id]).toEqual([true, false]);
  });

  it("HEAD returns the length of GET (RFC 9110, 8.6)", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    const headers = { authorization: `Bearer ${await app.token()}` };
    for (const path of [`/api/workers/${id}`, "/api/workers", "/api/executions"]) {
      const got = await fetch(app.url + path, { headers });
      const size = String((await got.arrayBuffer()).byteLength);
      const head = await fetch(app.url + path, { method: "HEAD", headers });
      expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, size, ""]);
    }
    await app.call(`PUT /api/workers/${id}`, { paused: true });
    const task = { message_id: "m", worker_id: id, instruction: "x", type: "immediate" };
    const waiting = `/api/tasks/${(await app.call("POST /api/tasks", task)).id}/wait?timeout_ms=60000`;
    expect((await fetch(app.url + waiting, { method: "HEAD", headers })).status).toBe(200);
  });

  it("a token is never cached (RFC 6749, 5.1)", async () => {
    await using app = await openApp();
    const login = await app.send("POST /api/auth/login", { username: "admin", password: PASSWORD });
    expect([login.status, login.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const { refresh_token } = login.body;
    const refreshed = await app.send("POST /api/auth/refresh", { refresh_token });
    expect([refreshed.status, refreshed.headers.get("cache-control")]).toEqual([200, "no-store"]);
  });

  it("returns 404 for unknown routes and 405 for other methods", async () => {
    await using app = await openApp();
    expect((await app.send("GET /api/nothing")).body).toMatchObject({ code: "not_found" });
    expect((await app.send("GET /nothing")).status).toBe(404);
    expect((await app.send("PATCH /api/workers/x")).headers.get("allow")).toBe("GET, PUT, DELETE");
    expect((await app.send("POST /livez")).headers.get("allow")).toBe("GET");
  });

  it("accepts `token` on every route, and no other undeclared parameter", async () => {
    await using app = await openApp();
    const id = crypto.randomUUID();
    for (const { method, path, access } of ROUTES) {
      if (access === "public") continue;
      const reply = await app.send(
        `${method} ${path.replace(/:\w+/g, id)}?surely_not=1&token=x`,
        method === "GET" ? undefined : {},
      );
      // Routes of runners, and those of the engine of a run, refuse other callers first.
      const isOfRuns = access === "write:runs" || path.startsWith("/api/approvals/") ||
        ["POST /api/approvals", "GET /api/recall"].includes(`${method} ${path}`);
      expect(isOfRuns ? [403] : [400, 404], `${method} ${path}`).toContain(reply.status);
      if (reply.status === 400) {
        expect(JSON.stringify(reply.body), `${method} ${path}`).not.toContain('"path":"token"');
      }
    }
  });

  it("/livez and /readyz need no token", async () => {
    await using app = await openApp();
    expect((await app.send("GET /livez", undefined, { authorization: "" })).status).toBe(200);
    expect((await app.send("GET /readyz", undefined, { authorization: "" })).body).toEqual({
      status: "ready",
    });
  });
});
