import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";
import { createTask } from "../../harness/service/runner.ts";

const FILES = { command: ["mcp-files", "/srv"], env: { FILES_KEY: "secret:files" } };
const DOCS = { url: "https://mcp.example.org/mcp", headers: { authorization: "secret:docs" } };

async function openWithAgents() {
  const app = await openApp({ config: { engines: { ...buildFakeEngines(), default: "claude" } } });
  for (const name of ["files", "docs"]) {
    await app.call(`PUT /api/secrets/${name}`, { value: `${name}-0123456789` });
  }
  return app;
}

const create = (app: App, fields: object) => app.send("POST /api/workers", { name: "Ada", ...fields });

describe("mcp of a worker (contract 27)", () => {
  it("is set by name: a request replaces one server as a whole, null removes one, and others stay", async () => {
    await using app = await openWithAgents();
    const made = (await create(app, { mcp: { files: FILES, docs: DOCS } })).body;
    expect(made.mcp).toEqual({ files: FILES, docs: DOCS });
    const put = (mcp: object) => app.call(`PUT /api/workers/${made.id}`, { mcp });
    expect((await put({ files: { command: ["other"] } })).mcp).toEqual({
      docs: DOCS,
      files: { command: ["other"], env: {} },
    });
    expect((await put({ docs: null, gone: null })).mcp).toEqual({ files: { command: ["other"], env: {} } });
    const seen = await app.call(`GET /api/workers/${made.id}`);
    expect(await app.call(`PUT /api/workers/${made.id}`, seen)).toMatchObject({ mcp: seen.mcp });
    const used = await app.call("GET /api/secrets/files");
    expect([used.workers, used.used_by]).toEqual([[made.id], []]);
  });

  it.each<[string, object, string]>([
    ["the service's own name", { svc: DOCS }, "mcp.svc"],
    ["another name", { "Big-Name": DOCS }, "mcp.Big-Name"],
    ["a secret in an argument", { x: { command: ["run", "secret:files"] } }, "mcp.x"],
    ["a relative path", { x: { command: ["./run"] } }, "mcp.x"],
    ["an option as program", { x: { command: ["-c"] } }, "mcp.x"],
    ["no program", { x: { command: [] } }, "mcp.x"],
    ["both forms", { x: { ...FILES, ...DOCS } }, "mcp.x"],
    ["a header of HTTP", { x: { url: "http://a", headers: { host: "b" } } }, "mcp.x"],
    ["a header with two lines", { x: { url: "http://a", headers: { "x-a": "b\r\nc: d" } } }, "mcp.x"],
    ["a user in the address", { x: { url: "http://a:b@c" } }, "mcp.x"],
    ["another scheme", { x: { url: "file:///etc/passwd" } }, "mcp.x"],
    ["a variable of the service", { x: { command: ["run"], env: { SVC_TOKEN: "a" } } }, "mcp.x"],
    ["an unknown secret", { x: { command: ["run"], env: { A: "secret:none" } } }, "mcp"],
    ["too many servers", Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`a${at}`, DOCS])), "mcp"],
  ])("refuses %s", async (_what, mcp, path) => {
    await using app = await openWithAgents();
    const { status, body } = await create(app, { mcp });
    expect(status, JSON.stringify(body)).toBe(400);
    expect(body.errors[0].path.startsWith(path), JSON.stringify(body)).toBe(true);
    // zod's own words say no way out.
    expect(body.errors[0].message).not.toMatch(/^Invalid/);
  });

  it("is refused for an engine that has no MCP servers, also when the engine changes later", async () => {
    await using app = await openWithAgents();
    const refused = await create(app, { engine: "echo", mcp: { files: FILES } });
    expect(refused.status).toBe(400);
    expect(refused.body.errors[0]).toEqual({
      path: "mcp",
      message: "cannot be given to its runs: the engine echo has no MCP servers",
    });
    const { id } = (await create(app, { mcp: { files: FILES } })).body;
    expect((await app.send(`PUT /api/workers/${id}`, { engine: "echo" })).status).toBe(400);
    expect((await app.send(`PUT /api/workers/${id}`, { engine: "echo", mcp: { files: null } })).status).toBe(
      200,
    );
  });

  it("needs write:commands, and write:secrets for a new secret; others see no name of a secret", async () => {
    await using app = await openWithAgents();
    const { id } = (await create(app, { mcp: { files: FILES } })).body;
    const login = async (scopes: string[]) => {
      const { token } = await app.call("POST /api/tokens", { name: scopes.join(), scopes });
      return { authorization: `Bearer ${token}` };
    };
    const plain = await login(["read:workers", "write:workers"]);
    const seen = (await app.send(`GET /api/workers/${id}`, undefined, plain)).body;
    expect(seen.mcp.files.env).toEqual({ FILES_KEY: "secret" });
    const back = await app.send(`PUT /api/workers/${id}`, seen, plain);
    expect(back.status, JSON.stringify(back.body)).toBe(200);
    expect((await app.call(`GET /api/workers/${id}`)).mcp).toEqual({ files: FILES });
    const body = { mcp: { more: { command: ["a"], env: { B: "secret:docs" } } } };
    const commands = await login(["read:workers", "write:workers", "write:commands"]);
    for (const [headers, scope] of [[plain, "write:commands"], [commands, "write:secrets"]] as const) {
      const refused = await app.send(`PUT /api/workers/${id}`, body, headers);
      expect([refused.status, refused.body.required_scope]).toEqual([403, scope]);
    }
    const removed = await app.send(`PUT /api/workers/${id}`, { mcp: { files: null } }, plain);
    expect(removed.status).toBe(403);
  });

  it("is part of a fleet file", async () => {
    await using app = await openWithAgents();
    await create(app, { mcp: { files: FILES, docs: DOCS } });
    const fleet = await app.call("GET /api/fleet");
    expect(fleet.workers[0].mcp).toEqual({ docs: DOCS, files: FILES });
    const apply = (workers: object[]) =>
      app.call("POST /api/fleet/apply", { fleet: { workers }, adopt: true });
    await apply(fleet.workers);
    expect((await apply(fleet.workers)).changes).toEqual([]);
    await apply([{ name: "Ada", mcp: { docs: DOCS } }]);
    const [worker] = await app.call("GET /api/workers");
    expect(worker.mcp).toEqual({ docs: DOCS });
  });

  it("fails a run with setup when its engine lost MCP, its program is missing, or its secret is not granted", async () => {
    await using app = await openWithAgents();
    const { id } = (await create(app, { mcp: { files: FILES } })).body;
    const run = async () => {
      const task = await createTask(app, id, "Work.");
      await app.settle(30_000);
      const all: Json[] = await app.call(`GET /api/executions?worker_id=${id}`);
      const execution = all.find(({ task_id }) => task_id === task);
      return [execution?.failure, execution?.error];
    };
    expect(await run()).toEqual([
      "setup",
      expect.stringContaining("files cannot be used: mcp-files was not found"),
    ]);
    await app.call("PUT /api/secrets/files", { workers: [] });
    expect(await run()).toEqual(["setup", expect.stringContaining("Cannot set mcp.files.FILES_KEY")]);
    await app.call("PUT /api/secrets/files", { workers: [id] });
    await app.db.write([{ sql: "update worker set engine = 'echo' where id = ?", args: [id] }]);
    expect(await run()).toEqual(["setup", expect.stringContaining("the engine echo has no MCP servers")]);
  });
});
