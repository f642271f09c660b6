import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/schema.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { startRun } from "../../harness/service/run.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";

const ENGINES = {
  default: "first",
  first: { kind: "claude", fallback: ["second"] },
  second: { kind: "claude" },
};

function open(engines: Record<string, object> = {}, more: object = {}): Promise<App> {
  return openApp({ config: { engines: { ...ENGINES, ...engines }, ...more } });
}

/** Returns the error of creating a worker with `fallback`. */
async function refuse(app: App, fields: object = {}): Promise<string> {
  const { status, body } = await app.send("POST /api/workers", { name: "Ada", fallback: true, ...fields });
  expect(status).toBe(400);
  return (body as { detail: string }).detail;
}

describe("the worker field fallback", () => {
  it("is off by default, and can be set, read and cleared", async () => {
    await using app = await open();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    expect(worker.fallback).toBe(false);
    const route = `/api/workers/${worker.id}`;
    expect((await app.call(`PUT ${route}`, { fallback: true })).fallback).toBe(true);
    expect((await app.call(`GET ${route}`)).fallback).toBe(true);
    expect((await app.call("GET /api/fleet")).workers).toMatchObject([{ name: "Ada", fallback: true }]);
    expect((await app.call(`PUT ${route}`, { fallback: false })).fallback).toBe(false);
    const engines = await app.call("GET /api/engines");
    const first = engines.find(({ name }: { name: string }) => name === "first");
    expect(first.fallback).toEqual(["second"]);
  });

  it("is refused without an engine that may replace its own", async () => {
    await using app = await open();
    expect(await refuse(app, { engine: "second" })).toMatch(/needs an engine in engines\.second\.fallback/);
    expect(await refuse(app, { runs_on: ["gpu"] })).toMatch(/worker on runners/);
    const worker = await app.call("POST /api/workers", { name: "Ada", fallback: true });
    const { status, body } = await app.send(`PUT /api/workers/${worker.id}`, { engine: "second" });
    expect([status, (body as { detail: string }).detail]).toEqual([
      400,
      expect.stringMatching(/^fallback: needs an engine in engines\.second/),
    ]);
  });

  it.each<[string, RegExp, object, object]>([
    ["has wider permissions", /second has wider permissions than first/, { permissions: "full" }, {}],
    [
      "is a program that nothing restricts",
      /second has wider permissions than first/,
      { kind: "command", command: "/bin/cat" },
      {},
    ],
    [
      "shares its state, for a worker in a box",
      /second cannot run in a box/,
      { state: "shared" },
      { isolation: "box" },
    ],
    [
      "sets a variable of the worker",
      /second sets the variable CODEX_HOME/,
      { kind: "codex" },
      { env: { CODEX_HOME: "/x" } },
    ],
    [
      "runs checks in another shell",
      /second would run gates and checks in another shell/,
      { kind: "command", command: "cat", shell: ["sh", "-c"] },
      { verify: { command: ["true"] } },
    ],
  ])("is refused with an engine that %s", async (_what, words, second, fields) => {
    // A program counts as `full`.
    const permissions = "shell" in second ? "full" : "edit";
    await using app = await open({
      first: { ...ENGINES.first, permissions },
      second: { kind: "claude", ...second },
    });
    expect(await refuse(app, fields)).toMatch(words);
    expect(
      (await app.send("POST /api/fleet/plan", {
        fleet: { workers: [{ name: "Ada", fallback: true, ...fields }] },
      })).status,
    ).toBe(400);
  });

  it("is refused with an engine that cannot ask people as the worker's does", async () => {
    await using app = await open({ first: { kind: "acp", command: "cat", fallback: ["second"] } });
    expect(await refuse(app)).toMatch(/second cannot ask people for permission, as first does/);
  });

  it("needs write:commands, and no run can set or clear it", async () => {
    await using app = await open(buildFakeEngines() as Record<string, object>);
    const run = await startRun(app, ["*:*"]);
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "first", fallback: true });
    const scopes = ["*:workers", "write:fleet"];
    const { token } = await app.call("POST /api/tokens", { name: "t", scopes });
    const bob = { name: "Bob", engine: "first", fallback: true };
    for (const headers of [run.headers, { authorization: `Bearer ${token}` }]) {
      for (
        const [route, body] of [
          ["POST /api/workers", bob],
          [`PUT /api/workers/${worker.id}`, { fallback: false }],
          ["POST /api/fleet/apply", { fleet: { workers: [bob] } }],
        ] as const
      ) {
        expect([route, (await app.send(route, body, headers)).status]).toEqual([route, 403]);
      }
    }
  });

  it("is in the report of the doctor when an engine cannot replace another", async () => {
    await using app = await open({ second: { kind: "claude", permissions: "full" } });
    const { checks } = await app.call("GET /api/system/doctor");
    expect(checks.find(({ name }: { name: string }) => name === "fallback")).toMatchObject({
      status: "warn",
      detail: "cannot be used: second has wider permissions than first",
    });
  });
});

describe("engines.<name>.fallback", () => {
  it.each([
    ["fallback: [third]", /config\.yaml:4:\d+: engines\.first\.fallback: no engine is called "third"/],
    ["fallback: [first]", /config\.yaml:4:\d+: engines\.first\.fallback: cannot contain first itself/],
  ])("refuses %s", async (line, words) => {
    await using folder = await createTempDir();
    const path = join(folder.path, "config.yaml");
    await Deno.writeTextFile(path, `engines:\n  first:\n    kind: claude\n    ${line}\n`);
    await expect(loadConfig(path, {})).rejects.toThrow(words);
  });
});
