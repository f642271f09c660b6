import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { buildForm, fetchAs, upload } from "../requests.ts";

const SESSIONS = "/api/local/sessions";

describe("/api/local/sessions (interface 4.1, contract 3)", () => {
  it("POST, GET, PUT and DELETE a session", async () => {
    await using app = await openApp();
    const made = await app.send(`POST ${SESSIONS}`, { name: "Plans" });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(String),
      name: "Plans",
      worker_id: null,
      created_at: expect.any(Number),
      updated_at: made.body.created_at,
    });
    expect((await app.call(`POST ${SESSIONS}`, {})).name).toBe("New session");
    expect((await app.call(`GET ${SESSIONS}`)).map((one: { name: string }) => one.name)).toEqual([
      "New session",
      "Plans",
    ]);
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const path = `${SESSIONS}/${made.body.id}`;
    expect(await app.call(`PUT ${path}`, { worker_id: worker.id })).toMatchObject({
      name: "Plans",
      worker_id: worker.id,
    });
    const shown = await app.call(`GET ${path}`);
    expect(await app.call(`PUT ${path}`, shown)).toMatchObject({ name: "Plans", worker_id: worker.id });
    expect(await app.call(`PUT ${path}`, { name: "Other", worker_id: null })).toMatchObject({
      name: "Other",
      worker_id: null,
    });
    expect(await app.call(`DELETE ${path}`)).toEqual({ status: "deleted" });
    expect((await app.send(`GET ${path}`)).status).toBe(404);
    expect((await app.send(`DELETE ${path}`)).status).toBe(404);
  });

  it("refuses invalid names and unknown workers", async () => {
    await using app = await openApp();
    const names = [{ name: "" }, { name: "x".repeat(201) }, { name: 1 }, { nmae: "" }];
    const bodies = [...names, { worker_id: "x" }, { worker_id: crypto.randomUUID() }];
    for (const body of bodies) {
      expect((await app.send(`POST ${SESSIONS}`, body)).status, JSON.stringify(body)).toBe(400);
    }
    expect((await app.send(`POST ${SESSIONS}`, { name: "x".repeat(200) })).status).toBe(201);
  });

  it("a worker that is deleted at the same time is unknown", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const seen = new Set<number>();
    for (let round = 0; round < 10; round++) {
      const worker = await app.call("POST /api/workers", { name: "Ada" });
      const replies = await Promise.all([
        app.send(`POST ${SESSIONS}`, { worker_id: worker.id }),
        app.send(`PUT ${SESSIONS}/${id}`, { worker_id: worker.id }),
        app.send(`DELETE /api/workers/${worker.id}`),
        app.send(`POST ${SESSIONS}`, { worker_id: worker.id }),
      ]);
      for (const { status, body } of replies) {
        seen.add(status);
        if (status >= 400) expect(body.errors?.[0].path, JSON.stringify(body)).toBe("worker_id");
      }
    }
    expect(seen.has(400)).toBe(true);
  });

  it("POST messages refuses empty messages and unknown sessions", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const send = (body: unknown) => app.send(`POST ${SESSIONS}/${id}/messages`, body);
    const bodies = [
      {},
      { content: "" },
      { content: " \n" },
      { content: 1 },
      { content: "x".repeat(262_145) },
      { content: "a", more: 1 },
      { content: "x", media_path: "" },
    ];
    for (const body of bodies) {
      expect((await send(body)).status, JSON.stringify(body).slice(0, 50)).toBe(400);
    }
    expect((await send({ content: "x".repeat(262_144) })).status).toBe(202);
    expect((await app.send(`POST ${SESSIONS}/${crypto.randomUUID()}/messages`, { content: "hi" })).status)
      .toBe(404);
    expect(await app.db.first("select count(*) as n from inbound_message")).toMatchObject({ n: 1 });
  });

  it("routes by the session's worker, by mention or by words, else lists the workers (contract 4.3, contract 4.4)", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada", description: "writes invoices" });
    const bob = await app.call("POST /api/workers", { name: "Bob", description: "walks dogs" });
    const own = await app.call(`POST ${SESSIONS}`, { worker_id: bob.id });
    const free = await app.call(`POST ${SESSIONS}`);
    const workerOf = async (session: { id: string }, content: string) => {
      const { message_id } = await app.call(`POST ${SESSIONS}/${session.id}/messages`, { content });
      await app.settle();
      const row = await app.db.first("select worker_id, instruction from task where message_id = ?", [
        message_id,
      ]);
      return row === null ? null : [row.worker_id, row.instruction];
    };
    expect(await workerOf(own, "anything")).toEqual([bob.id, "anything"]);
    expect(await workerOf(own, "@ada: this one")).toEqual([ada.id, "this one"]);
    expect(await workerOf(free, "please send the invoice to Carl")).toEqual([
      ada.id,
      "please send the invoice to Carl",
    ]);
    expect(await workerOf(free, "@ada and @bob")).toBeNull();
    const history = await app.call(`GET ${SESSIONS}/${free.id}/messages`);
    expect(history.at(-1)).toMatchObject({
      role: "bee",
      content: expect.stringMatching(/- @Ada: writes invoices\n- @Bob: walks dogs/),
    });
  });

  it("DELETE also deletes messages, replies, contexts and uploads, and ends runs in progress (interface 3)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { path } = await upload(app, id, "hello");
    await app.call(`POST ${SESSIONS}/${id}/messages`, { content: "say first", media_path: path });
    await app.settle();
    await app.call(`POST ${SESSIONS}/${id}/messages`, { content: "sleep 60" });
    await app.until("execution.started", 2);
    await app.call(`DELETE ${SESSIONS}/${id}`);
    await app.settle();
    for (const table of ["inbound_message", "outbound_message", "session_context", "upload"]) {
      expect(await app.db.first(`select count(*) as n from ${table}`), table).toMatchObject({ n: 0 });
    }
    await expect(Deno.stat(path)).rejects.toThrow();
    expect(await app.call("GET /api/executions")).toMatchObject([{ failure: "cancelled" }, {
      status: "completed",
    }]);
  });

  it("history is ascending, starts with the latest 1,000, and pages back with `before`", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    for (let i = 0; i < 5; i++) {
      await app.call(`POST ${SESSIONS}/${id}/messages`, { content: `m${i}` });
      await app.settle();
    }
    const all = await app.call(`GET ${SESSIONS}/${id}/messages`);
    const texts = ["m0", "m1", "m2", "m3", "m4"].flatMap((text) => [text, text]);
    expect(all.map((one: { content: string }) => one.content)).toEqual(texts);
    const fields = ["content", "id", "media", "question_id", "reply_to", "role", "ts"];
    expect(Object.keys(all[0]).sort()).toEqual(fields);
    const ts = all.map((one: { ts: number }) => one.ts);
    expect(ts).toEqual([...ts].sort((a, b) => a - b));
    const latest = await app.call(`GET ${SESSIONS}/${id}/messages?limit=3`);
    expect(latest).toEqual(all.slice(-3));
    expect(await app.call(`GET ${SESSIONS}/${id}/messages?limit=4&before=${latest[0].id}`)).toEqual(
      all.slice(3, 7),
    );
    expect((await app.send(`GET ${SESSIONS}/${id}/messages?limit=1001`)).status).toBe(400);
    expect((await app.send(`GET ${SESSIONS}/${id}/messages?before=x`)).status).toBe(400);
  });

  it("refuses too many waiting messages with 429, and keeps the accepted ones [BKP-1]", async () => {
    await using app = await openApp({
      config: { limits: { max_waiting_messages: 3 }, bee: { quiet_window: "1h" } },
    });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const replies = [];
    for (let i = 0; i < 9; i++) {
      replies.push(await app.send(`POST ${SESSIONS}/${id}/messages`, { content: `m${i}` }));
    }
    expect(replies.map((reply) => reply.status)).toEqual([202, 202, 202, 429, 429, 429, 429, 429, 429]);
    expect(replies[3]?.headers.get("retry-after")).toBe("5");
    const { id: other } = await app.call(`POST ${SESSIONS}`);
    expect((await app.send(`POST ${SESSIONS}/${other}/messages`, { content: "free" })).status).toBe(202);
    expect(await app.call(`GET ${SESSIONS}/${id}/messages`)).toHaveLength(3);
  });
});

describe("uploads (contract 3)", () => {
  it("stores a file under a safe name and returns it as an attachment", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const stored = await upload(app, id, "hello", "Übersicht 2026.txt");
    expect(stored).toEqual({
      path: join(app.server.parts.paths.uploads, id, stored.name),
      name: expect.stringMatching(/^[0-9a-f-]{36}-Ubersicht_2026\.txt$/),
      original_name: "Übersicht 2026.txt",
      size: 5,
      mime: "text/plain",
    });
    expect(await Deno.readTextFile(stored.path)).toBe("hello");
    const reply = await app.send(`GET ${SESSIONS}/${id}/media/${stored.name}`);
    expect(reply.body).toBe("hello");
    expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
    expect(reply.headers.get("content-type")).toBe("text/plain");
    expect(reply.headers.get("content-disposition")).toMatch(
      /^attachment; filename="_bersicht 2026.txt"; filename\*=UTF-8''%C3%9C/,
    );
    const png = Uint8Array.from(
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01",
      (one) => one.charCodeAt(0),
    );
    expect((await upload(app, id, png, "page.html")).mime).toBe("image/png");
  });

  it("accepts files up to the limit, refuses larger ones, and leaves no files [UPL-1]", async () => {
    await using app = await openApp({ config: { limits: { max_upload_bytes: 100_000 } } });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const sizes = [[0, 200], [99_999, 200], [100_000, 200], [100_001, 413], [5_000_000, 413]] as const;
    for (const [size, status] of sizes) {
      const body = buildForm({}, new Uint8Array(size));
      const reply = await fetchAs(app, `POST ${SESSIONS}/${id}/media`, { body });
      await reply.body?.cancel();
      expect([size, reply.status]).toEqual([size, status]);
    }
    const names = [...Deno.readDirSync(join(app.server.parts.paths.uploads, id))];
    expect(names).toHaveLength(3);
  });

  it("an unknown session accepts no file", async () => {
    await using app = await openApp();
    const route = `POST ${SESSIONS}/${crypto.randomUUID()}/media`;
    const reply = await fetchAs(app, route, { body: buildForm({}, "x") });
    expect([reply.status, (await reply.json()).code]).toEqual([404, "not_found"]);
  });
});
