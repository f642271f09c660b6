import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";

// A read of a worker is at most a second old.
const SOON = { timeout: 10_000 };

describe("/api/workers (interface 4.1, contract 3)", () => {
  it("POST creates a worker with every field and a separate directory", async () => {
    await using app = await openApp();
    const reply = await app.send("POST /api/workers", { name: "Ada" });
    expect(reply.status).toBe(201);
    expect(reply.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      name: "Ada",
      description: "",
      memory: "",
      constraints: "",
      engine: "",
      engine_args: {},
      env: {},
      departments: [],
      scopes: [],
      verify: null,
      work_dir: join(app.server.parts.paths.workers, reply.body.id),
      status: "idle",
      runs_on: [],
      gateways: [],
      mcp: {},
      skills: [],
      fallback: false,
      isolation: null,
      isolation_effective: "namespace",
      repo: null,
      home: "",
      resources: null,
      paused: false,
      created_at: expect.any(Number),
      updated_at: reply.body.created_at,
    });
    expect((await Deno.stat(reply.body.work_dir)).isDirectory).toBe(true);
    expect(await app.call(`GET /api/workers/${reply.body.id}`)).toEqual(reply.body);
    expect(Object.keys(await app.call(`GET /api/workers/${reply.body.id}`))).toEqual(Object.keys(reply.body));
  });

  it("PUT changes only the given fields, and accepts the response of GET", async () => {
    await using app = await openApp();
    const made = await app.call("POST /api/workers", {
      name: "Ada",
      description: "d",
      memory: "m",
      constraints: "c",
    });
    const changed = await app.call(`PUT /api/workers/${made.id}`, { description: "" });
    expect(changed).toEqual({ ...made, description: "", updated_at: expect.any(Number) });
    expect(await app.call(`PUT /api/workers/${made.id}`, changed)).toEqual({
      ...changed,
      updated_at: expect.any(Number),
    });
    expect(await app.call(`PUT /api/workers/${made.id}`, {})).toMatchObject({ name: "Ada" });
    expect((await app.send(`PUT /api/workers/${made.id}`, { memory: null })).status).toBe(400);
    expect((await app.send(`PUT /api/workers/${made.id}`, { work_dir: "/elsewhere" })).body.errors[0].path)
      .toBe("work_dir");
  });

  it("PUT keeps both of two simultaneous changes of different fields", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    await Promise.all([
      app.call(`PUT /api/workers/${id}`, { description: "new" }),
      app.call(`PUT /api/workers/${id}`, { memory: "new" }),
      app.call(`PUT /api/workers/${id}`, { engine_args: { echo: "--a" } }),
    ]);
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({
      description: "new",
      memory: "new",
      engine_args: { echo: "--a" },
    });
  });

  it("engine_args merge per engine, and an empty value clears one; unknown engines and unbalanced quotes are refused", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await app.call("POST /api/workers", { name: "Ada", engine_args: { echo: "-a 'b c'" } });
    const put = (engine_args: object) => app.send(`PUT /api/workers/${id}`, { engine_args });
    expect((await put({ fake: "-x" })).body.engine_args).toEqual({ echo: "-a 'b c'", fake: "-x" });
    expect((await put({ echo: "" })).body.engine_args).toEqual({ fake: "-x" });
    for (const bad of [{ nope: "-x" }, { fake: "'open" }, { fake: "a | b" }, { fake: "a\\" }, { fake: 1 }]) {
      expect((await put(bad)).status, JSON.stringify(bad)).toBe(400);
    }
    expect((await app.send(`PUT /api/workers/${id}`, { engine: "nope" })).body.detail).toContain(
      "Known engines: ",
    );
    expect((await app.send("POST /api/workers", { name: "x", engine: "nope" })).status).toBe(400);
  });

  it("lists by a part of the name in any case, and by exact id", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada Ünal" });
    await app.call("POST /api/workers", { name: "Bob" });
    const names = async (query: string) =>
      (await app.call(`GET /api/workers?${query}`)).map((one: { name: string }) => one.name);
    expect(await names("name=ADA")).toEqual(["Ada Ünal"]);
    expect(await names(`name=${encodeURIComponent("üN")}`)).toEqual(["Ada Ünal"]);
    expect(await names("name=%25")).toEqual([]);
    expect(await names(`id=${ada.id}`)).toEqual(["Ada Ünal"]);
    expect(await names("id=unknown")).toEqual([]);
    expect(await names("")).toEqual(["Bob", "Ada Ünal"]);
  });

  it("DELETE keeps the directory by default, and always the history", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "@Ada hi" });
    await app.settle();
    expect(await app.call(`DELETE /api/workers/${worker.id}`)).toEqual({ status: "deleted" });
    expect((await Deno.stat(worker.work_dir)).isDirectory).toBe(true);
    expect((await app.send(`GET /api/workers/${worker.id}`)).status).toBe(404);
    expect((await app.send(`DELETE /api/workers/${worker.id}`)).status).toBe(404);
    const [execution] = await app.call(`GET /api/executions?worker_id=${worker.id}`);
    expect(execution).toMatchObject({ worker_name: "Ada", status: "completed" });

    const other = await app.call("POST /api/workers", { name: "Bob" });
    await app.call(`DELETE /api/workers/${other.id}?delete_work_dir=true`);
    await expect(Deno.stat(other.work_dir)).rejects.toThrow();
  });

  it("DELETE ends the worker's runs and returns after their end; a waiting client gets the result", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "@Ada sleep 60" });
    await app.until("execution.started");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "@Ada say later" });
    await app.until("task.created", 2);
    await app.call(`DELETE /api/workers/${worker.id}`);
    const [execution] = await app.call("GET /api/executions");
    expect(execution).toMatchObject({ status: "failed", failure: "cancelled" });
    const said = (await app.call(`GET /api/local/sessions/${session.id}/messages`)).map((
      one: { content: string },
    ) => one.content);
    expect(said.slice(2).sort()).toEqual([
      expect.stringMatching(/^Ada was deleted, so this task was cancelled: say later/),
      expect.stringMatching(/^Ada was stopped/),
    ]);
    expect(await app.db.read("select distinct status, reason from task")).toMatchObject([
      { status: "cancelled", reason: "worker deleted" },
    ]);
  });

  it("DELETE of a worker with a long queue names ten tasks and the number of others in each conversation", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada", paused: true });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: "hello",
    });
    await app.until("task.created");
    const task = { message_id, worker_id: worker.id, instruction: "x", type: "immediate" };
    await app.call("POST /api/tasks/batch", { tasks: Array(99).fill(task) });
    // JSON escapes make the text six times as large.
    await app.db.write([{ sql: "update task set instruction = ?", args: ["\u0001".repeat(170_000)] }]);
    await app.call(`DELETE /api/workers/${worker.id}`);
    const said = (await app.call(`GET /api/local/sessions/${session.id}/messages`))
      .map(({ content }: { content: string }) => content)
      .filter((text: string) => text.startsWith("Ada was deleted, so this task was cancelled:"));
    expect(said).toHaveLength(10);
    expect(
      said.filter((text: string) =>
        text.endsWith("\n\n90 more tasks of this conversation were cancelled, too.")
      ),
    )
      .toHaveLength(1);
    expect(await app.db.read("select distinct status from task")).toEqual([{ status: "cancelled" }]);
  });

  it("status has the current work, and whether the worker can start", async () => {
    await using app = await openApp({
      config: { engines: { ...buildFakeEngines(), gone: { kind: "command", command: "/no/such/program" } } },
    });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    expect(await app.call(`GET /api/workers/${worker.id}/status`)).toMatchObject({
      status: "idle",
      engine: "fake",
      usable: true,
      pending: 0,
      running: 0,
      execution_ids: [],
    });
    const lost = await app.call("POST /api/workers", { name: "Lost", engine: "gone" });
    expect(await app.call(`GET /api/workers/${lost.id}/status`)).toMatchObject({
      status: "unavailable",
      usable: false,
      detail: "/no/such/program does not exist",
    });
  });

  it("is unavailable in lists while its engine is unusable, unless it works or is paused (contract 3, Worker)", async () => {
    await using program = await createTempDir();
    const command = join(program.path, "agent");
    await using app = await openApp({
      config: { engines: { ...buildFakeEngines(), gone: { kind: "command", command } } },
    });
    const { id } = await app.call("POST /api/workers", { name: "Lost", engine: "gone" });
    await app.call("POST /api/workers", { name: "Held", engine: "gone", paused: true });
    await app.call("POST /api/workers", { name: "Ada", description: '"engine":"gone"' });
    const statuses = async () =>
      Object.fromEntries(
        (await app.call("GET /api/workers")).map((
          { name, status }: Record<string, string>,
        ) => [name, status]),
      );
    expect(await statuses()).toEqual({ Lost: "unavailable", Held: "paused", Ada: "idle" });
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({ status: "unavailable", engine: "gone" });
    // The response can be sent back.
    const sent = await app.send(`PUT /api/workers/${id}`, await app.call(`GET /api/workers/${id}`));
    expect([sent.status, sent.body.status]).toEqual([200, "unavailable"]);
    await Deno.writeTextFile(command, "#!/bin/sh\n", { mode: 0o755 });
    await expect.poll(statuses, SOON).toEqual({ Lost: "idle", Held: "paused", Ada: "idle" });
    expect(await app.call(`GET /api/workers/${id}/status`)).toMatchObject({ status: "idle", usable: true });
  });

  it("is available with its own login, if each worker has one", async () => {
    await using program = await createTempDir();
    const command = join(program.path, "claude");
    await Deno.writeTextFile(command, "#!/bin/sh\necho 99.0.0\n", { mode: 0o755 });
    const home = join(program.path, "home");
    await using app = await openApp({
      config: {
        engines: {
          ...buildFakeEngines(),
          claude: { kind: "claude", command, state: "per_worker", env: { HOME: home } },
        },
      },
    });
    const { id } = await app.call("POST /api/workers", { name: "Ada", engine: "claude" });
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({ status: "unavailable" });
    const state = join(app.dataDir, "state", id, "claude");
    await Deno.mkdir(state, { recursive: true });
    await Deno.writeTextFile(join(state, ".credentials.json"), "{}");
    await expect.poll(() => app.call(`GET /api/workers/${id}`), SOON).toMatchObject({ status: "idle" });
  });
});
