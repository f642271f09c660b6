import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { ROUTES } from "../../../src/http/app.ts";
import type { AnyRoute } from "../../../src/http/route.ts";
import { openApp } from "../../harness/service/app.ts";
import { fetchAs } from "../requests.ts";
import { McpCaller } from "../../harness/mcp_caller.ts";
import { countProcessorMs } from "../../harness/service/processor_time.ts";

const routes = ROUTES as readonly AnyRoute[];
const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

/** Builds a valid path of the route with its required parameters. */
function buildPath(route: AnyRoute): string {
  const path = route.path.replace(/:\w+/g, UNKNOWN);
  if (route.path === "/api/tasks") return `${path}?worker_id=${UNKNOWN}`;
  if (route.path === "/api/memory") return `${path}?scope=global`;
  if (["/api/contexts", "/api/approvals"].includes(route.path)) return `${path}?session_key=k`;
  return path;
}

describe("every list (interface 8) [BKP-5]", () => {
  const lists = routes.filter((route) => "page_size" in (route.query ?? {}));

  it(`has pages with limits and never clamps: ${lists.length} lists [BKP-5]`, async () => {
    await using app = await openApp({ inMemory: true });
    expect(lists.length).toBeGreaterThan(8);
    for (const route of lists) {
      const path = buildPath(route);
      const add = (query: string) => `GET ${path}${path.includes("?") ? "&" : "?"}${query}`;
      const max = route.path === "/api/workers" ? 200 : 100;
      const accept = { accept: "application/json" };
      const odd = [
        "0",
        "-1",
        String(max + 1),
        "1e9",
        "1e1",
        "1000000000",
        "999999999999999999999",
        "x",
        "",
        "1.5",
        " 1",
        "0x1",
        "NaN",
        "null",
        "1,2",
      ];
      for (const value of odd) {
        const reply = await app.send(add(`page_size=${encodeURIComponent(value)}`), undefined, accept);
        expect([route.path, value, reply.status, reply.body.errors?.[0]?.path]).toEqual([
          route.path,
          value,
          400,
          "page_size",
        ]);
      }
      for (const value of ["1", String(max)]) {
        const { status } = await app.send(add(`page_size=${value}`), undefined, accept);
        expect([route.path, value, [200, 404].includes(status)]).toEqual([route.path, value, true]);
      }
      if (!("page" in (route.query ?? {}))) continue;
      for (const value of ["0", "-1", "x", "", "1.5"]) {
        expect([route.path, value, (await app.send(add(`page=${value}`))).status]).toEqual([
          route.path,
          value,
          400,
        ]);
      }
      expect((await app.send(add("page=1&page=2"))).status).toBe(400);
      expect([200, 404]).toContain((await app.send(add("page=99999999"))).status);
    }
    for (const [limit, status] of [["0", 400], ["1", 200], ["100", 200], ["101", 400], ["x", 400]] as const) {
      expect((await app.send(`GET /api/system/executions?limit=${limit}`)).status).toBe(status);
    }
  });

  it("every array of objects in a response is such a list, or has another limit", () => {
    const answersMany = routes.filter((route) =>
      route.method === "GET" && route.response.def?.type === "array"
    );
    const others = answersMany.filter((route) => !lists.includes(route)).map((route) => route.path);
    // Histories and the coordinator's runs have `limit`, up to 1,000 and 100. Departments are returned completely.
    // The configuration limits engines, and the query limits usage. The inbox has at most 100 of each kind.
    // The configuration limits launchers and platforms, and each platform has at most 1,000 senders.
    // A preview has at most 50 times, and a page of a search 50 rows.
    expect(others.sort()).toEqual([
      "/api/departments",
      "/api/engines",
      "/api/inbox",
      "/api/launchers",
      "/api/local/sessions/:id/messages",
      "/api/platforms",
      "/api/platforms/:name/senders",
      "/api/recall",
      "/api/schedules/preview",
      "/api/search",
      "/api/system/executions",
      "/api/system/series",
      "/api/usage",
    ]);
  });
});

describe("huge, deep and wide input [BKP-6]", () => {
  it("is refused quickly and with a message on all routes with JSON [BKP-6]", async () => {
    await using app = await openApp({ inMemory: true });
    const deep = (open: string, close: string, times: number, core = "1") =>
      open.repeat(times) + core + close.repeat(times);
    const bodies: Record<string, string> = {
      "deep arrays": deep("[", "]", 500_000),
      "deep objects": deep('{"a":', "}", 150_000),
      "a deep name": `{"name":${deep('{"a":', "}", 150_000)}}`,
      "deep engine_args": `{"name":"x","engine_args":${deep('{"a":', "}", 150_000)}}`,
      "deep departments": `{"name":"x","departments":${deep("[", "]", 400_000)}}`,
      "never closed": "[".repeat(1_000_000),
      "many fields": `{${Array.from({ length: 90_000 }, (_, i) => `"f${i}":1`).join()}}`,
      "the same field again and again": `{${
        Array.from({ length: 90_000 }, () => '"name":"x"').join()
      },"nmae":1}`,
      "many scopes": `{"name":"x","scopes":[${
        Array.from({ length: 50_000 }, () => '"read:workers"').join()
      }]}`,
      "many departments": `{"name":"x","departments":[${
        Array.from({ length: 90_000 }, () => '"d"').join()
      }]}`,
      "many engines": `{"name":"x","engine_args":{${
        Array.from({ length: 60_000 }, (_, i) => `"e${i}":"x"`).join()
      }}}`,
      "a long field name": `{"${"x".repeat(1_000_000)}":1}`,
      "a long number": `{"name":"x","paused":${"1".repeat(1_000_000)}}`,
      "many escapes": `{"name":"${"\\u0000".repeat(170_000)}"}`,
      "__proto__": '{"name":"x","__proto__":{"paused":true}}',
      "constructor": '{"name":"x","constructor":{"prototype":{"paused":true}}}',
      "a lone surrogate as a field": '{"name":"x","\\ud800":1}',
      "too large": `{"name":"${"x".repeat(1024 * 1024)}"}`,
    };
    const writes = [
      "POST /api/workers",
      "POST /api/tasks",
      "PUT /api/memory/entry",
      "POST /api/auth/login",
      "POST /api/local/sessions",
    ];
    for (const route of writes) {
      for (const [what, body] of Object.entries(bodies)) {
        const processorMs = countProcessorMs();
        const reply = await app.send(route, body);
        const max = route.includes("/api/auth/") ? 16 * 1024 : 1024 * 1024;
        const status = body.length > max ? 413 : 400;
        expect([route, what, reply.status]).toEqual([route, what, status]);
        expect(JSON.stringify(reply.body).length).toBeLessThan(20_000);
        expect(processorMs()).toBeLessThan(2_000);
      }
    }
    expect(await app.call("GET /api/workers")).toEqual([]);
    expect(({} as { paused?: boolean }).paused).toBeUndefined();
  });

  it("is refused in queries and headers", async () => {
    await using app = await openApp({ inMemory: true });
    const queries = {
      "many parameters": Array.from({ length: 5_000 }, (_, i) => `p${i}=1`).join("&"),
      "one again and again": Array.from({ length: 5_000 }, () => "id=x").join("&"),
      "many ids": `id=${Array.from({ length: 101 }, () => "x").join()}`,
      "a long name": `name=${"x".repeat(50_000)}`,
      "__proto__": "__proto__=1&page_size=0",
      "constructor": "constructor=1",
    };
    for (const [what, query] of Object.entries(queries)) {
      const reply = await app.send(`GET /api/workers?${query}`);
      expect([what, reply.status]).toEqual([what, 400]);
      expect(JSON.stringify(reply.body).length).toBeLessThan(20_000);
    }
    const names = [
      "idempotency-key",
      "x-request-id",
      "last-event-id",
      "content-type",
      "x-forwarded-for",
      "accept",
    ];
    for (const name of names) {
      const reply = await app.send("POST /api/workers", { name: "x" }, { [name]: "x".repeat(10_000) });
      expect([name, [201, 400, 415].includes(reply.status)]).toEqual([name, true]);
    }
  });

  it("does no harm through /mcp", async () => {
    await using app = await openApp({ inMemory: true });
    const mcp = new McpCaller(app);
    for (const depth of [10, 10_000, 100_000]) {
      const args = `{"name":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
      const { status, text } = await mcp.call("worker_create", args);
      expect([depth, status < 500, text.slice(0, 200)]).toEqual([depth, true, expect.any(String)]);
      expect(text).not.toMatch(/RangeError|\.ts:|node_modules/);
    }
    expect((await app.send("GET /livez")).status).toBe(200);
  });
});

const ERRORS: Record<string, () => unknown> = {
  "an SQL error": () => new Error('SQLITE_ERROR: no such column: canary_column in "select canary from task"'),
  "a constraint": () => new Error("SQLITE_CONSTRAINT: CHECK constraint failed: canary"),
  "a foreign key": () => new Error("FOREIGN KEY constraint failed: canary"),
  "a type error": () => new TypeError("Cannot read properties of undefined (reading 'canary')"),
  "a range error": () => new RangeError("Maximum call stack size exceeded at /canary/file.ts:1:1"),
  "a syntax error": () => new SyntaxError("Unexpected token 'c', \"canary\" is not valid JSON"),
  "a missing file": () =>
    new Deno.errors.NotFound("No such file or directory (os error 2): open '/canary/secret.key'"),
  "a forbidden file": () =>
    new Deno.errors.PermissionDenied("Permission denied (os error 13): open '/canary'"),
  "a full disk": () => new Error("No space left on device (os error 28): write '/canary'"),
  "a refused connection": () =>
    new Error("tcp connect error: Connection refused (os error 111) canary.internal:8080"),
  "an error with a cause": () =>
    new Error("outer canary", { cause: new Error("inner canary at /canary.ts:3:4") }),
  "many errors": () => new AggregateError([new Error("canary one"), new Error("canary two")], "canary all"),
  "an error without words": () => new Error(""),
  "an error with a code": () => Object.assign(new Error("canary"), { code: "ECANARY", rawCode: 11 }),
  "a text": () => "canary, thrown as a text",
  "a number": () => 42,
  "null": () => null,
  "undefined": () => undefined,
  "an object": () => ({ message: "canary", stack: "at /canary.ts" }),
  "a service error of ours": () =>
    new ServiceError(
      "internal",
      "Cannot complete the request: internal error.",
      {
        cause: new Error("canary"),
      },
    ),
  "an abort": () => new DOMException("canary", "AbortError"),
  "a huge error": () => new Error("canary ".repeat(100_000)),
};

describe("internal errors [SEC-6, SEC-4]", () => {
  it(`do not reveal the cause and are not cached: ${Object.keys(ERRORS).length} kinds, reading and writing [SEC-6]`, async () => {
    await using app = await openApp({ inMemory: true });
    const { db } = app;
    const real = { read: db.read.bind(db), first: db.first.bind(db), write: db.write.bind(db) };
    for (const [what, make] of Object.entries(ERRORS)) {
      const reject = () => Promise.reject(make());
      Object.assign(db, { read: reject, first: reject, write: reject });
      const routes = [
        "GET /api/workers",
        "POST /api/workers",
        "GET /api/departments",
        `DELETE /api/workers/${UNKNOWN}`,
      ];
      for (const route of routes) {
        const reply = await fetchAs(app, route, {
          headers: { "content-type": "application/json" },
          ...(route.startsWith("POST") ? { body: '{"name":"x"}' } : {}),
        });
        expect([what, route, reply.status]).toEqual([what, route, 500]);
        expect([what, await reply.json()]).toEqual([what, {
          type: "about:blank#internal",
          title: "Internal error",
          status: 500,
          detail: expect.stringMatching(
            /^Cannot complete the request: internal error\.( The log .* under the request id [0-9a-f-]{36}\.)?$/,
          ),
          code: "internal",
          request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        }]);
        expect(reply.headers.get("cache-control")).toBe("no-store");
        expect([...reply.headers.values()].join()).not.toContain("canary");
      }
    }
    Object.assign(db, real);
    expect((await app.send("GET /api/workers")).status).toBe(200);
  });

  it("an address has at most 1,000 parameters", async () => {
    await using app = await openApp({ inMemory: true });
    const many = (count: number) => `/api/workers?${"name=x&".repeat(count)}`;
    const repeated = await app.send(`GET ${many(1_000)}`);
    expect(repeated).toMatchObject({ status: 400, body: { errors: [{ path: "name" }] } });
    const over = await app.send(`GET ${many(1_001)}`);
    expect([over.status, over.body.detail]).toEqual([
      400,
      expect.stringContaining("more than 1000 parameters"),
    ]);
  });

  it("error responses cannot be cached, and cacheable responses vary with the caller [SEC-4]", async () => {
    await using app = await openApp();
    const routes = [
      "GET /api/nothing",
      "GET /api/workers?x=1",
      `GET /api/executions/${UNKNOWN}/logs`,
      "DELETE /api/workers",
    ];
    for (const route of routes) {
      const reply = await app.send(route);
      expect([route, reply.status >= 400, reply.headers.get("cache-control")]).toEqual([
        route,
        true,
        "no-store",
      ]);
    }
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    const path = `/api/executions/${execution.id}/logs`;
    // A cache by RFC 9111: stores public responses by address and the headers of Vary.
    const kept = new Map<string, string>();
    const ask = async (headers: Record<string, string>, query = "") => {
      const key = [path + query, headers.authorization ?? ""].join("\n");
      const known = kept.get(key);
      if (known !== undefined) return known;
      const response = await app.server.fetch(new Request(`http://localhost${path}${query}`, { headers }));
      const text = await response.text();
      expect(response.headers.get("vary") ?? "").toBe(response.ok ? "Authorization" : "");
      if (/public/.test(response.headers.get("cache-control") ?? "")) kept.set(key, text);
      return text;
    };
    const token = await app.token();
    expect(await ask({ authorization: `Bearer ${token}` })).toContain("hello");
    expect(await ask({}, `?token=${token}`)).toContain("hello");
    expect(await ask({ authorization: "Bearer somebody-else" })).not.toContain("hello");
    expect(await ask({})).not.toContain("hello");
    expect(await ask({}, "?token=x")).not.toContain("hello");
    expect(kept.size).toBe(2);
  });
});
