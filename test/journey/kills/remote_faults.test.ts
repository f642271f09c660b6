import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ANSWER_MAX_MS } from "../../../src/store/db/remote_driver.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { Proxy } from "../../harness/fakes/proxy.ts";
import { SQLD, SqldSite } from "../../harness/fakes/sqld.ts";
import { waitUntil } from "../../harness/wait.ts";
import { createTask } from "../../harness/service/runner.ts";

// The server keeps rows of earlier test runs.
const RUN = crypto.randomUUID();
let place: SqldSite;

beforeAll(async () => {
  if (SQLD !== undefined) place = await SqldSite.open();
});

afterAll(async () => {
  await place?.[Symbol.asyncDispose]();
});

/** Starts a service whose database is behind a network that the test breaks. */
async function openAppBehind(proxy: Proxy): Promise<App> {
  return await openApp({
    config: { ...place.config, database: { url: proxy.url }, engines: buildFakeEngines() },
  });
}

async function measure<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const started = performance.now();
  return { result: await work, ms: performance.now() - started };
}

const names = async (app: App): Promise<string[]> =>
  (await app.call("GET /api/workers?page_size=200")).map((one: { name: string }) => one.name).sort();

/** Creates `count` workers concurrently, each with a separate key. */
function create(app: App, prefix: string, count: number) {
  return Promise.all(Array.from({ length: count }, (_, index) => {
    const name = `${prefix}-${RUN}-${index}`;
    return app.send("POST /api/workers", { name }, { "idempotency-key": `${name}-key` });
  }));
}

describe.skipIf(SQLD === undefined)("a libSQL server behind a bad network", () => {
  it("that is silent: requests get 503 in time, outcomes wait, and afterwards all work is done [DBF-10]", async () => {
    using proxy = new Proxy(place.sqld.url);
    await using app = await openAppBehind(proxy);
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const task = await createTask(app, worker.id, "sleep 1");
    await app.until("execution.started");
    proxy.mode = "hold-answers";
    const { result, ms } = await measure(create(app, "silent", 6));
    expect(result.map(({ status }) => status)).toEqual(Array(6).fill(503));
    // Concurrent requests share the same wait.
    expect(ms).toBeLessThan(ANSWER_MAX_MS * 2 + 3_000);
    expect((await measure(app.send("GET /livez"))).ms).toBeLessThan(1_000);
    expect((await app.send("GET /api/workers")).status).toBe(503);
    expect((await app.send("GET /readyz")).status).toBe(503);
    proxy.mode = "pass";
    await waitUntil("the service is ready again", async () => (await app.send("GET /readyz")).status === 200);
    const done = await app.call(`GET /api/tasks/${task}/wait?timeout_ms=60000`);
    expect([done.status, done.attempt]).toEqual(["completed", 1]);
    await create(app, "silent", 6);
    const silent = (await names(app)).filter((name) => name.includes(RUN));
    expect(silent).toEqual(Array.from({ length: 6 }, (_, n) => `silent-${RUN}-${n}`));
  });

  it("that loses a response: a retry with the same key gets the result once, also among many in one commit [DBF-11]", async () => {
    using proxy = new Proxy(place.sqld.url);
    await using app = await openAppBehind(proxy);
    const before = (await names(app)).length;
    for (const round of ["a", "b", "c"]) {
      proxy.mode = "cut-answers";
      const lost = await create(app, `lost-${round}`, 5);
      expect(lost.map(({ status }) => status)).toEqual(Array(5).fill(503));
      proxy.mode = "pass";
      const again = await create(app, `lost-${round}`, 5);
      expect(again.map(({ status }) => status)).toEqual(Array(5).fill(201));
    }
    expect(proxy.lost).toBeGreaterThan(0);
    const all = await names(app);
    expect(all.length - before).toBe(15);
    expect(new Set(all.filter((name) => name.includes(`${RUN}-`) && name.startsWith("lost-"))).size).toBe(15);
  });

  it("that fails and returns, and one that is slow: work continues [DBF-10]", async () => {
    using proxy = new Proxy(place.sqld.url);
    await using app = await openAppBehind(proxy);
    proxy.mode = "refuse";
    proxy.cut();
    const { result, ms } = await measure(app.send("POST /api/workers", { name: "Gone" }));
    expect([result.status, result.body.code]).toEqual([503, "unavailable"]);
    expect(ms).toBeLessThan(ANSWER_MAX_MS);
    proxy.mode = "trickle";
    await waitUntil("the service is ready again", async () => (await app.send("GET /readyz")).status === 200);
    const worker = await app.call("POST /api/workers", { name: "Slow" });
    const { id } = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "say slow" });
    await waitUntil(
      "the conversation has the reply",
      async () =>
        (await app.call(`GET /api/local/sessions/${id}/messages`))
          .some(({ content }: { content: string }) => content === "slow"),
      60_000,
    );
  });

  it("without a free connection returns 429 and executes nothing, and the service retries (facts, libSQL server 3)", async () => {
    let refusals = 0;
    let refused = 0;
    await using busy = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      async (request) => {
        if (refusals > 0) {
          refusals--;
          refused++;
          return new Response("too many", { status: 429 });
        }
        const { pathname } = new URL(request.url);
        return await fetch(place.sqld.url + pathname, {
          method: request.method,
          headers: request.headers,
          ...(request.method === "GET" ? {} : { body: await request.text() }),
        });
      },
    );
    await using app = await openApp({
      config: { ...place.config, database: { url: `http://127.0.0.1:${busy.addr.port}` } },
    });
    const name = `Refused-${RUN}`;
    refusals = 3;
    expect((await app.send("POST /api/workers", { name })).status).toBe(201);
    expect(refused).toBe(3);
    expect((await names(app)).filter((one) => one === name)).toEqual([name]);
  });
});
