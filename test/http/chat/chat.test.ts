import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";

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
    for (
      const body of [{ name: "" }, { name: "x".repeat(201) }, { name: 1 }, { worker_id: "x" }, {
        worker_id: crypto.randomUUID(),
      }, { nmae: "" }]
    ) {
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
    for (
      const body of [
        {},
        { content: "" },
        { content: " \n" },
        { content: 1 },
        { content: "x".repeat(262_145) },
        { content: "a", more: 1 },
        { content: "x", media_path: "" },
      ]
    ) {
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
    const { path } = await upload(app, id, "a.txt", "hello");
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
    expect(all.map((one: { content: string }) => one.content)).toEqual([
      "m0",
      "m0",
      "m1",
      "m1",
      "m2",
      "m2",
      "m3",
      "m3",
      "m4",
      "m4",
    ]);
    expect(Object.keys(all[0]).sort()).toEqual([
      "content",
      "id",
      "media",
      "question_id",
      "reply_to",
      "role",
      "ts",
    ]);
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

  it("stores a message once per Idempotency-Key", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const send = () =>
      app.send(`POST ${SESSIONS}/${id}/messages`, { content: "once" }, { "idempotency-key": "m" });
    const first = await send();
    expect((await send()).body).toEqual(first.body);
    const said = await app.call(`GET ${SESSIONS}/${id}/messages`);
    expect(said.filter((one: { role: string }) => one.role === "user")).toMatchObject([{ content: "once" }]);
  });
});

describe("uploads (contract 3)", () => {
  it("stores a file under a safe name and returns it as an attachment", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const stored = await upload(app, id, "Übersicht 2026.txt", "hello");
    expect(stored).toEqual({
      path: join(app.server.parts.paths.uploads, id, stored.name),
      name: expect.stringMatching(/^[0-9a-f-]{36}-Ubersicht_2026\.txt$/),
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
    const png = new Uint8Array([
      0x89,
      0x50,
      0x4e,
      0x47,
      0x0d,
      0x0a,
      0x1a,
      0x0a,
      0,
      0,
      0,
      13,
      73,
      72,
      68,
      82,
      0,
      0,
      0,
      1,
    ]);
    expect((await upload(app, id, "page.html", png)).mime).toBe("image/png");
  });

  it("stores hostile names safely [UPL-4]", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const folder = join(app.server.parts.paths.uploads, id);
    for (
      const name of [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        ".",
        "",
        "a\r\nb: c",
        "CON",
        "x".repeat(4_000),
        "\u202etxt.exe",
        "a\\b\\c",
        ".bashrc",
        "日本.txt",
      ]
    ) {
      const { path } = await upload(app, id, name, "x");
      expect(path.startsWith(`${folder}/`), name).toBe(true);
      expect(path.slice(folder.length + 1), name).toMatch(/^[0-9a-f-]{36}(-[\w.-]+)?$/);
    }
  });

  it("accepts files up to the limit, refuses larger ones, and leaves no files [UPL-1]", async () => {
    await using app = await openApp({ config: { limits: { max_upload_bytes: 100_000 } } });
    const { id } = await app.call(`POST ${SESSIONS}`);
    for (
      const [size, status] of [[0, 200], [99_999, 200], [100_000, 200], [100_001, 413], [
        5_000_000,
        413,
      ]] as const
    ) {
      const reply = await post(app, id, form("big.bin", new Uint8Array(size)));
      expect(reply.status, String(size)).toBe(status);
      await reply.body?.cancel();
    }
    const names = [...Deno.readDirSync(join(app.server.parts.paths.uploads, id))];
    expect(names).toHaveLength(3);
  });

  it("refuses endless uploads early and with constant memory [UPL-1]", async () => {
    await using app = await openApp({ config: { limits: { max_upload_bytes: 1_000_000 } } });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const head = new TextEncoder().encode(
      '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n',
    );
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(head),
      pull(controller) {
        sent += 65_536;
        if (sent > 200_000_000) return controller.close();
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    const reply = await post(app, id, body, "multipart/form-data; boundary=b").catch(() => null);
    if (reply !== null) {
      expect(reply.status).toBe(413);
      await reply.body?.cancel();
    }
    expect(sent).toBeLessThan(100_000_000);
    expect((await app.send("GET /livez")).status).toBe(200);
  });

  it("refuses malformed multipart bodies with 400 or 415, never 500 [UPL-3]", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const part = (name: string, file = true) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"${file ? '; filename="f"' : ""}\r\n\r\nx\r\n`;
    const type = "multipart/form-data; boundary=b";
    const odd: [string, string][] = [
      ["", type],
      ["--b--\r\n", type],
      ["garbage", type],
      [part("file"), type],
      [part("file").slice(0, 40), type],
      [`${part("other")}--b--\r\n`, type],
      [`${part("file")}${part("file")}--b--\r\n`, type],
      [`${part("file", false)}--b--\r\n`, type],
      [`--b\r\n${"x: y\r\n".repeat(5_000)}\r\n--b--`, type],
      [
        `${Array.from({ length: 50 }, (_, i) => part(`f${i}`, false)).join("")}${part("file")}--b--\r\n`,
        type,
      ],
      [`${part("file")}--b--\r\n`, "multipart/form-data"],
      [`${part("file")}--b--\r\n`, `multipart/form-data; boundary=${"b".repeat(500)}`],
      [`${part("file")}--b--\r\n`, "application/json"],
      [`${part("file")}--b--\r\n`, "multipart/mixed; boundary=b"],
    ];
    for (const [body, contentType] of odd) {
      const reply = await post(app, id, body, contentType);
      expect([400, 415], `${contentType} ${body.slice(0, 60)}`).toContain(reply.status);
      expect(reply.headers.get("content-type")).toBe("application/problem+json");
      await reply.body?.cancel();
    }
    const folder = join(app.server.parts.paths.uploads, id);
    expect([...Deno.readDirSync(folder)].map((entry) => entry.name)).toEqual([]);
  });

  it("media_path must be a real file of this session (interface 8) [PTH-1, UPL-6]", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { id: other } = await app.call(`POST ${SESSIONS}`);
    const own = await upload(app, id, "a.txt", "own");
    const foreign = await upload(app, other, "b.txt", "foreign");
    const folder = join(app.server.parts.paths.uploads, id);
    const outside = await Deno.makeTempFile();
    await Deno.writeTextFile(outside, "secret");
    await Deno.symlink(outside, join(folder, "link"));
    await Deno.symlink(join(folder, "..", other), join(folder, "dirlink"));
    await Deno.link(outside, join(folder, "hard"));
    await Deno.mkdir(`${folder}-evil`);
    await Deno.writeTextFile(`${folder}-evil/x`, "prefix");
    const send = (media_path: unknown) =>
      app.send(`POST ${SESSIONS}/${id}/messages`, { content: "", media_path });
    const refused = [
      foreign.path,
      outside,
      folder,
      join(folder, "link"),
      join(folder, "hard"),
      join(folder, "dirlink", foreign.name),
      join(folder, "none"),
      `${folder}-evil/x`,
      `${folder}/../${other}/${foreign.name}`,
      own.name,
      `${own.path}\0`,
      `${own.path}/`,
      own.path.replaceAll("/", "%2f"),
      own.path.toUpperCase(),
      "/dev/null",
      "/etc/passwd",
      "file:///etc/passwd",
      "",
      ".",
      "..",
      1,
      null,
      {},
    ];
    for (const path of refused) expect((await send(path)).status, String(path)).toBe(400);
    expect((await send(own.path)).status).toBe(202);
    expect((await send(join(folder, ".", own.name))).status).toBe(202);
    expect((await app.call(`GET ${SESSIONS}/${id}/messages`))[0]).toMatchObject({ content: "", media: own });
    for (
      const name of [foreign.name, "link", "hard", "dirlink", "..", "%2e%2e", "..%2f..%2fsecret.key", "x\0"]
    ) {
      expect((await app.send(`GET ${SESSIONS}/${id}/media/${encodeURI(name)}`)).status, name).toBe(404);
    }
    expect((await app.send(`GET ${SESSIONS}/${other}/media/${own.name}`)).status).toBe(404);
  });

  it("an unknown session accepts no file", async () => {
    await using app = await openApp();
    const reply = await post(app, crypto.randomUUID(), form("a", "x"));
    expect(reply.status).toBe(404);
    await reply.body?.cancel();
  });
});

function form(name: string, content: string | Uint8Array): FormData {
  const data = new FormData();
  data.set("file", new File([content as BlobPart], name));
  return data;
}

async function post(app: App, id: string, body: BodyInit, type?: string): Promise<Response> {
  return await fetch(`${app.url}${SESSIONS}/${id}/media`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await app.token()}`,
      ...(type === undefined ? {} : { "content-type": type }),
    },
    body,
  });
}

async function upload(app: App, id: string, name: string, content: string | Uint8Array) {
  const reply = await post(app, id, form(name, content));
  expect(reply.status, name).toBe(200);
  return await reply.json();
}
