import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { buildBearer, createUser } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";
import { ctl } from "../../harness/terminal.ts";

const tokenOf = async (app: App, name: string, scopes: string[]) =>
  buildBearer((await app.call("POST /api/tokens", { name, scopes })).token);

describe("scopes of a worker (contract 9.1) [SCP-4]", () => {
  it("a caller grants no scope that it lacks, but may keep or remove scopes [SCP-4]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const ci = await tokenOf(app, "ci", ["read:workers", "write:workers", "write:tasks"]);
    for (const scopes of [["*:*"], ["write:tasks", "read:system"], ["read:*"]]) {
      const refused = await app.send("POST /api/workers", { name: "Mallory", scopes }, ci);
      const missing = scopes.at(-1);
      expect([refused.status, refused.body.required_scope]).toEqual([403, missing]);
      expect(refused.body.detail).toContain(missing);
    }
    const own = await app.call("POST /api/workers", { name: "Own", scopes: ["write:tasks"] }, ci);
    await app.call("POST /api/workers", { name: "Plain" }, ci);
    const more = await app.send(`PUT /api/workers/${own.id}`, { scopes: ["write:tasks", "write:chat"] }, ci);
    expect([more.status, more.body.required_scope]).toEqual([403, "write:chat"]);
    const strong = await app.call("POST /api/workers", { name: "Strong", scopes: ["*:*", "read:system"] });
    await app.call(`PUT /api/workers/${strong.id}`, { ...strong, description: "as it was" }, ci);
    const narrowed = await app.call(`PUT /api/workers/${strong.id}`, { scopes: ["read:system"] }, ci);
    expect(narrowed.scopes).toEqual(["read:system"]);
    const back = await app.send(`PUT /api/workers/${strong.id}`, { scopes: ["*:*"] }, ci);
    expect(back.status).toBe(403);
    // A fleet file grants no scope that its caller lacks either.
    const fleet = await tokenOf(app, "fleet", ["write:fleet", "read:system"]);
    const file = (scopes: string[]) => ({ fleet: { workers: [{ name: "Filed", scopes }] } });
    const applied = await app.send("POST /api/fleet/apply", file(["*:*"]), fleet);
    expect([applied.status, applied.body.required_scope]).toEqual([403, "*:*"]);
    await app.call("POST /api/fleet/apply", file(["read:system"]), fleet);
  });
});

describe("the address of a webhook (contract 11)", () => {
  it("is complete for callers who may set it; others see it without path and query", async () => {
    await using app = await openApp();
    const url = "https://hooks.example.org/services/T0/secret?key=k";
    await app.call("POST /api/webhooks", { name: "ci", url, events: ["task.*"] });
    const viewer = await createUser(app, "Vera", "viewer");
    const programs = [viewer.headers, await tokenOf(app, "reads", ["read:webhooks"])];
    for (const headers of programs) {
      const one = await app.call("GET /api/webhooks/ci", undefined, headers);
      const [listed] = await app.call("GET /api/webhooks", undefined, headers);
      expect([one.url, listed.url]).toEqual(["https://hooks.example.org", "https://hooks.example.org"]);
    }
    const writer = await tokenOf(app, "writes", ["*:webhooks"]);
    for (const headers of [{}, writer]) {
      expect((await app.call("GET /api/webhooks/ci", undefined, headers)).url).toBe(url);
      expect((await app.call("GET /api/webhooks", undefined, headers))[0].url).toBe(url);
    }
  });
});

describe("messages from a run to a hook or a chat (contract 2.9) [SCP-7]", () => {
  const open = (depth: number) =>
    openApp({
      config: {
        engines: buildFakeEngines(),
        limits: { max_chain_depth: depth },
        platforms: { alerts: { kind: "webhook", worker: "Ada" } as never },
      },
    });
  const ways = (sessionId: string): [string, unknown][] => [
    ["POST /hooks/alerts", { id: 1, text: "say again" }],
    [`POST /api/local/sessions/${sessionId}/messages`, { content: "@Ada say again" }],
  ];

  it("continue its chain of tasks [SCP-7]", async () => {
    await using app = await open(1);
    const run = await startRun(app, ["write:hooks", "write:chat"], "Ada");
    for (const [route, body] of ways(run.sessionId)) await app.call(route, body, run.headers);
    await app.until("task.created", 3);
    const tasks = await app.db.read("select depth, instruction from task order by id");
    expect(tasks.map(({ depth }) => depth)).toEqual([0, 1, 1]);
  });

  it("are refused in a chain that is too long; people and programs start a new chain [SCP-7]", async () => {
    await using app = await open(0);
    const run = await startRun(app, ["write:hooks", "write:chat"], "Ada");
    for (const [route, body] of ways(run.sessionId)) {
      const refused = await app.send(route, body, run.headers);
      expect([route, refused.status, refused.body.code]).toEqual([route, 409, "conflict"]);
      expect(refused.body.detail).toContain("limits.max_chain_depth is 0");
    }
    // Programs and people start a new chain.
    const program = await tokenOf(app, "alerts", ["write:hooks"]);
    await app.call("POST /hooks/alerts", { id: 2, text: "say new" }, program);
  });
});

it("--json escapes control sequences on a terminal, and prints the server's JSON into a pipe (contract 6.3)", async () => {
  await using app = await openApp();
  const value = "\u009b31mred\u007f \u202eturned";
  await app.call("PUT /api/memory/entry", { scope: "global", key: "k", value });
  const args = ["memory", "get", "--scope", "global", "--json"];
  const [shown, piped] = [await ctl(app, args, { terminal: true }), await ctl(app, args)];
  expect(shown.out).toContain("\\u009b31mred\\u007f \\u202eturned");
  expect(JSON.parse(shown.out)).toEqual(JSON.parse(piped.out));
  expect(piped.out).toContain(value);
});
