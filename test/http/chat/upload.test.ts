import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UPLOADS_PER_SESSION_MAX, UPLOADS_PER_SESSION_MAX_LARGEST } from "../../../src/files/uploads.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { openClient, PASS_HASH } from "../../harness/service/client.ts";
import { createTempDir, startServer } from "../../harness/service/process.ts";
import { createRandom } from "../../harness/model/schedule.ts";
import { fetchAs } from "../requests.ts";
import { waitUntil } from "../../harness/wait.ts";

const SESSIONS = "/api/local/sessions";
const TYPE = "multipart/form-data; boundary=b";
// The long run: SVC_TEST_RACES=10000.
const RACES = Number(Deno.env.get("SVC_TEST_RACES") ?? 200);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

const encoder = new TextEncoder();

function part(name: string, content = "x", filename: string | null = "f"): string {
  const file = filename === null ? "" : `; filename="${filename}"`;
  return `--b\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
}

async function post(
  app: App,
  id: string,
  body: BodyInit,
  type: string | null = TYPE,
  key = "",
): Promise<{ status: number; body: string; headers: Headers }> {
  const headers = {
    ...(type === null ? {} : { "content-type": type }),
    ...(key === "" ? {} : { "idempotency-key": key }),
  };
  const response = await fetchAs(app, `POST ${SESSIONS}/${id}/media`, { headers, body });
  return { status: response.status, body: await response.text(), headers: response.headers };
}

async function upload(
  app: App,
  id: string,
  content = "x",
  filename = "f",
): Promise<{ path: string; name: string }> {
  const reply = await post(app, id, `${part("file", content, filename)}--b--\r\n`);
  expect(reply.status, reply.body).toBe(200);
  return JSON.parse(reply.body);
}

/** Lists the names of files in a directory, none if it does not exist. */
function listNames(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map((entry) => entry.name);
  } catch {
    return [];
  }
}

const listUploads = (app: App, id: string) => listNames(join(app.server.parts.paths.uploads, id));

describe("the name of an upload", () => {
  const sent: [filename: string, original: string, end: RegExp][] = [
    ["季度报告.pdf", "季度报告.pdf", /^[0-9a-f-]{36}-file\.pdf$/],
    ["отчёт.xlsx", "отчёт.xlsx", /^[0-9a-f-]{36}-file\.xlsx$/],
    ["דוח 2026.docx", "דוח 2026.docx", /-2026\.docx$/],
    ["👨‍👩‍👧.png", "👨‍👩‍👧.png", /^[0-9a-f-]{36}-file\.png$/],
    ["a%22b%0D%0A.txt", 'a"b.txt', /-a_b\.txt$/],
    ["in\u202efdp.exe", "infdp.exe", /-infdp\.exe$/],
    ["a\u2066b\u061cc\u200ed\u0085\u009be\u2029.md", "abcde.md", /-abcde\.md$/],
    [`${"字".repeat(300)}.pdf`, `${"字".repeat(251)}.pdf`, /^[0-9a-f-]{36}-file\.pdf$/],
  ];
  it("stays whole in the answer, the history and the download, its extension on the disk", async () => {
    await using app = await openApp();
    for (const [filename, original, stored] of sent) {
      const { id } = await app.call(`POST ${SESSIONS}`);
      const media = JSON.parse((await post(app, id, `${part("file", "words", filename)}--b--\r\n`)).body);
      expect(media).toMatchObject({ original_name: original, name: expect.stringMatching(stored) });
      expect(listUploads(app, id)).toEqual([media.name]);
      await app.call(`POST ${SESSIONS}/${id}/messages`, { content: "look", media_path: media.path });
      const [message] = await app.call(`GET ${SESSIONS}/${id}/messages`);
      expect(message.media).toEqual(media);
      const reply = await fetchAs(app, `GET ${SESSIONS}/${id}/media/${media.name}`);
      const disposition = reply.headers.get("content-disposition") ?? "";
      const [, exact = ""] = /filename\*=UTF-8''([^;]+)$/.exec(disposition) ?? [];
      expect(decodeURIComponent(exact)).toBe(original);
      const [, ascii = ""] = /filename="([^"]+)"/.exec(disposition) ?? [];
      expect(ascii.split(".").at(-1)).toBe(original.split(".").at(-1));
      await reply.body?.cancel();
    }
  });
});

describe("an upload with an Idempotency-Key (contract 8.4)", () => {
  it("is stored once per key, also if two arrive at the same time; another file with that key is a conflict", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const send = (content: string, name: string, key: string) =>
      post(app, id, `${part("file", content, name)}--b--\r\n`, TYPE, key);
    const first = await send("one", "a.txt", "k1");
    const again = await send("one", "a.txt", "k1");
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.body).toBe(first.body);
    expect(first.headers.get("idempotent-replayed")).toBe(null);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect((await send("two", "a.txt", "k1")).status).toBe(409);
    expect((await send("one", "b.txt", "k1")).status).toBe(409);
    expect(listUploads(app, id)).toEqual([JSON.parse(first.body).name]);
    const both = await Promise.all([send("three", "c.txt", "k2"), send("three", "c.txt", "k2")]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(both[0]?.body).toBe(both[1]?.body);
    expect(listUploads(app, id)).toHaveLength(2);
    expect(await app.db.read("select kind from journal where kind = 'upload.stored'")).toHaveLength(2);
    // Without a key each upload is a separate file.
    await upload(app, id, "one", "a.txt");
    expect(listUploads(app, id)).toHaveLength(3);
  });
});

describe("an upload above the limit [UPL-1]", () => {
  it.each(["content-length", "chunked", "chunked, without a token"])(
    "is 413 before its end, uses no memory, and closes the connection: %s [UPL-1]",
    async (how) => {
      await using folder = await createTempDir();
      const env = { SVC_AUTH__PASSWORD_HASH: PASS_HASH, SVC_LIMITS__MAX_UPLOAD_BYTES: "5000000" };
      await using server = await startServer({ dataDir: folder.path, env });
      const api = await openClient(server.url);
      const { id } = await api.call(`POST ${SESSIONS}`, {});
      const before = await server.memory();
      const { hostname, port } = new URL(server.url);
      const connection = await Deno.connect({ hostname, port: Number(port) });
      const size = how.startsWith("chunked") ? "transfer-encoding: chunked" : "content-length: 1000000000";
      await connection.write(encoder.encode(
        `POST ${SESSIONS}/${id}/media HTTP/1.1\r\nhost: ${hostname}\r\n` +
          (how.includes("token") ? "" : `authorization: Bearer ${api.token}\r\n`) +
          `content-type: ${TYPE}\r\n${size}\r\n\r\n`,
      ));
      const block = new Uint8Array(65_536).fill(120);
      const head = part("file", "").slice(0, -2);
      const chunk = (bytes: Uint8Array) =>
        how.startsWith("chunked")
          ? new Uint8Array([...encoder.encode(`${bytes.length.toString(16)}\r\n`), ...bytes, 13, 10])
          : bytes;
      let sent = 0;
      let answer = "";
      const reading = (async () => {
        const buffer = new Uint8Array(4_096);
        while (true) {
          const read = await connection.read(buffer).catch(() => null);
          if (read === null) return;
          answer += new TextDecoder().decode(buffer.subarray(0, read));
        }
      })();
      let ended = false;
      void reading.then(() => ended = true);
      try {
        await connection.write(chunk(encoder.encode(head)));
        const framed = chunk(block);
        while (!ended && sent < 200_000_000) {
          for (let at = 0; at < framed.length;) at += await connection.write(framed.subarray(at));
          sent += block.length;
        }
      } catch {
        // Expected: the server closed the connection.
      }
      await reading;
      connection.close();
      const status = how.includes("token") ? 401 : 413;
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer).toMatch(/"code":"(payload_too_large|unauthenticated)"/);
      expect(sent).toBeLessThan(100_000_000);
      expect(await server.memory() - before).toBeLessThan(60e6);
      const left = join(folder.path, "uploads", id);
      await waitUntil("nothing is left", () => listNames(left).length === 0);
      expect((await api.send(`GET ${SESSIONS}`)).status).toBe(200);
    },
  );
});

describe("limits of a session [UPL-2]", () => {
  it("a session accepts files up to the limit and refuses more, also with simultaneous uploads [UPL-2]", async () => {
    await using app = await openApp({ inMemory: true });
    const { id } = await app.call(`POST ${SESSIONS}`);
    await fill(app, id, UPLOADS_PER_SESSION_MAX - 3, 1);
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => post(app, id, `${part("file")}--b--\r\n`)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(replies.filter(({ status }) => status === 507)).toHaveLength(7);
    expect(JSON.parse((await post(app, id, `${part("file")}--b--\r\n`)).body)).toMatchObject({
      code: "storage_full",
    });
    expect(listUploads(app, id)).toHaveLength(3);
    const message = await app.call(`POST ${SESSIONS}/${id}/messages`, { content: "hello" });
    const form = `${part("message_id", message.message_id, null)}${part("file")}--b--\r\n`;
    const headers = { "content-type": TYPE };
    const sent = await fetchAs(app, "POST /api/messages", { headers, body: form });
    expect(sent.status).toBe(507);
    await sent.body?.cancel();
    const { id: other } = await app.call(`POST ${SESSIONS}`);
    await upload(app, other);
  });

  it("a session accepts bytes up to the limit and refuses one more [UPL-2]", async () => {
    await using app = await openApp({ inMemory: true, config: { limits: { max_upload_bytes: 1_000 } } });
    const { id } = await app.call(`POST ${SESSIONS}`);
    await fill(app, id, UPLOADS_PER_SESSION_MAX_LARGEST - 1, 1_000);
    await upload(app, id, "x".repeat(999));
    expect((await post(app, id, `${part("file", "xx")}--b--\r\n`)).status).toBe(507);
    await upload(app, id, "x");
    expect((await post(app, id, `${part("file", "")}--b--\r\n`)).status).toBe(507);
    expect(listUploads(app, id)).toHaveLength(2);
  });
});

describe("a session at its limit [UPL-2]", () => {
  const config = { limits: { max_upload_bytes: 1_000 } };
  const big = `${part("file", "x".repeat(1_001))}--b--\r\n`;

  it.each([
    ["files", UPLOADS_PER_SESSION_MAX, 0],
    ["bytes", UPLOADS_PER_SESSION_MAX_LARGEST, 1_000],
  ])("of %s refuses a file before reading it", async (_limit, count, size) => {
    await using app = await openApp({ inMemory: true, config });
    const { id } = await app.call(`POST ${SESSIONS}`);
    await fill(app, id, count - 1, size);
    expect((await post(app, id, big)).status).toBe(413);
    await app.db.write([{ sql: "delete from upload", args: [] }]);
    await fill(app, id, count, size);
    expect((await post(app, id, big)).status).toBe(507);
  });
});

/** Inserts rows of uploads without files. */
async function fill(app: App, sessionId: string, count: number, size: number): Promise<void> {
  await app.db.write([{
    sql: `with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < ?)
      insert into upload (path, session_id, name, original_name, size, mime, created_at)
      select '/none/' || i, ?, 'n', 'n', ?, 'text/plain', 0 from n`,
    args: [count, sessionId, size],
  }]);
}

/** Bodies with one defect each. */
function corpus(): [body: string | Uint8Array, type: string | null][] {
  const whole = `${part("file")}--b--\r\n`;
  const cut = Array.from({ length: 20 }, (_, index) => whole.slice(0, Math.floor(whole.length * index / 20)));
  return [
    ...cut.map((body): [string, string] => [body, TYPE]),
    ["garbage", TYPE],
    ["\0".repeat(1_000), TYPE],
    [new Uint8Array(10_000).fill(0xff), TYPE],
    ["--b--\r\n", TYPE],
    ["--b\r\n--b--\r\n", TYPE],
    ["--b\r\n\r\n--b--\r\n", TYPE],
    [`--b\r\n\r\nx\r\n--b--\r\n`, TYPE],
    [`--b\ncontent-disposition: form-data; name="file"; filename="f"\n\nx\n--b--\n`, TYPE],
    [`${part("other")}--b--\r\n`, TYPE],
    [`${part("FILE")}--b--\r\n`, TYPE],
    [`${part("")}--b--\r\n`, TYPE],
    [`${part("file", "x", null)}--b--\r\n`, TYPE],
    [`${part("file")}${part("file")}--b--\r\n`, TYPE],
    [`${part("file")}${part("more", "x", null)}--b--\r\n`, TYPE],
    [`${part("a", "x", null).repeat(2)}${part("file")}--b--\r\n`, TYPE],
    [`${part("__proto__", "x", null)}${part("file")}--b--\r\n`, TYPE],
    [`${part("constructor", "x", null)}${part("file")}--b--\r\n`, TYPE],
    [
      `${Array.from({ length: 50 }, (_, i) => part(`f${i}`, "x", null)).join("")}${part("file")}--b--\r\n`,
      TYPE,
    ],
    [`${Array.from({ length: 50 }, (_, i) => part(`f${i}`)).join("")}--b--\r\n`, TYPE],
    [`${part("a", "x".repeat(300_000), null)}${part("file")}--b--\r\n`, TYPE],
    [`${part("x".repeat(5_000), "x", null)}${part("file")}--b--\r\n`, TYPE],
    [`--b\r\n${"x: y\r\n".repeat(5_000)}\r\n--b--`, TYPE],
    [`--b\r\n${"x".repeat(100_000)}: y\r\n\r\nx\r\n--b--\r\n`, TYPE],
    [`--b\r\ncontent-disposition: attachment; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n`, TYPE],
    [`--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n`, TYPE],
    [`--b\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--\r\n`, TYPE],
    [`--B\r\n${whole.slice(5)}`, TYPE],
    [whole, "multipart/form-data"],
    [whole, "multipart/form-data;"],
    [whole, "multipart/form-data; boundary="],
    [whole, 'multipart/form-data; boundary=""'],
    [whole, "multipart/form-data; boundary=c"],
    [whole, `multipart/form-data; boundary=${"b".repeat(500)}`],
    [whole, "multipart/form-data; boundary=b; boundary=c"],
    [whole, "multipart/mixed; boundary=b"],
    [whole, "multipart/form-data-x; boundary=b"],
    [whole, "application/json"],
    [whole, "application/x-www-form-urlencoded"],
    [whole, "text/plain"],
    [whole, ""],
    [whole, null],
    ["", TYPE],
    ["{}", "application/json"],
  ];
}

describe("odd multipart bodies [UPL-3]", () => {
  it(`are accepted or refused with 400, 413 or 415, and leave no partial file: ${corpus().length} of them and 300 random ones (seed ${SEED}) [UPL-3]`, async () => {
    await using app = await openApp({ inMemory: true });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const chance = createRandom(SEED);
    const whole = encoder.encode(
      `${part("file", "some content that is longer than the rest of it")}--b--\r\n`,
    );
    const broken = Array.from({ length: 300 }, (): [Uint8Array, string] => {
      const bytes = whole.slice(0, chance() < 0.3 ? Math.floor(chance() * whole.length) : whole.length);
      for (let i = 0; i < 1 + chance() * 4; i++) {
        bytes[Math.floor(chance() * bytes.length)] = Math.floor(chance() * 256);
      }
      return [bytes, TYPE];
    });
    expect(corpus().length).toBeGreaterThanOrEqual(60);
    let taken = 0;
    for (const [body, type] of [...corpus(), ...broken]) {
      const reply = await post(app, id, body as BodyInit, type);
      const what = `${type} ${typeof body === "string" ? body.slice(0, 80) : new TextDecoder().decode(body)}`;
      expect([200, 400, 413, 415], `${reply.status} ${what}`).toContain(reply.status);
      if (reply.status === 200) taken++;
      else expect([what, reply.headers.get("content-type")]).toEqual([what, "application/problem+json"]);
      expect(reply.body, what).not.toMatch(/busboy|node_modules|\.ts\b|\.js\b|\bat [\w.]+ \(/i);
    }
    const names = listUploads(app, id);
    expect(names).toHaveLength(taken);
    expect(names.filter((name) => /^\..*\.part$/.test(name))).toEqual([]);
  });
});

it("a form with extra fields is refused, and leaves no file (contract 1)", async () => {
  await using app = await openApp();
  const { id } = await app.call(`POST ${SESSIONS}`);
  const reply = await post(app, id, `${part("file")}${part("caption", "x", null)}--b--\r\n`);
  expect(reply.status).toBe(400);
  expect(reply.body).toContain("caption: unknown");
  expect(listUploads(app, id)).toEqual([]);
});

describe("hostile names [UPL-4]", () => {
  it("are stored as data, and appear neither in the path nor in the header of the download [UPL-4]", async () => {
    await using app = await openApp({ inMemory: true });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const folder = join(app.server.parts.paths.uploads, id);
    const names = [
      "../../etc/passwd",
      "..\\..\\windows",
      "/etc/passwd",
      "C:\\CON",
      "CON",
      "NUL.txt",
      "aux",
      "..",
      ".",
      "...",
      "",
      " ",
      ".bashrc",
      ".part",
      "x.part",
      "-rf",
      "--help",
      "a;b",
      "a'b",
      "%2e%2e%2f",
      "%00",
      "%0d%0aset-cookie: x=1",
      "*",
      "?",
      "<script>",
      "$(id)",
      "`id`",
      "a|b",
      "x".repeat(4_000),
      "ü".repeat(2_000),
      "日本語.txt",
      "\u202etxt.exe",
      "\ufeffx",
      "e\u0301".repeat(100),
      "👩‍👩‍👧‍👦.png",
      "a\tb",
      "a\\b\\c",
      "index.html",
      "a.svg",
      "x.html;.png",
    ];
    for (const name of names) {
      const { path, name: stored } = await upload(app, id, "content", name);
      expect([name, path]).toEqual([name, join(folder, stored)]);
      expect([name, stored]).toEqual([
        name,
        expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}(-[A-Za-z0-9][\w.-]{0,79})?$/),
      ]);
      const reply = await app.send(`GET ${SESSIONS}/${id}/media/${stored}`);
      expect([name, reply.status, reply.body]).toEqual([name, 200, "content"]);
      expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
      expect(reply.headers.get("content-security-policy")).toContain("sandbox");
      expect(reply.headers.get("content-type")).toBe("text/plain");
      expect(reply.headers.get("set-cookie")).toBeNull();
      expect(reply.headers.get("content-disposition")).toMatch(
        /^attachment; filename="[^"\\\r\n/%]{1,150}"; filename\*=UTF-8''[\w.~!*%-]*$/,
      );
    }
    expect(listUploads(app, id).filter((name) => /^\..*\.part$/.test(name))).toEqual([]);
  });
});

it("an upload during the deletion of its session is either stored before the deletion, or the session is not found", async () => {
  await using app = await openApp();
  const seen = new Set<number>();
  for (let round = 0; round < 20; round++) {
    const { id } = await app.call(`POST ${SESSIONS}`);
    const [sent] = await Promise.all([
      post(app, id, `${part("file", "x".repeat(round * 500))}--b--\r\n`),
      new Promise((resolve) => setTimeout(resolve, round / 4)).then(() =>
        app.call(`DELETE ${SESSIONS}/${id}`)
      ),
    ]);
    seen.add(sent.status);
    expect([200, 404], sent.body).toContain(sent.status);
    await expect(Deno.stat(join(app.server.parts.paths.uploads, id))).rejects.toThrow(Deno.errors.NotFound);
  }
  expect(seen.has(404)).toBe(true);
});

it("a disk error of the service is not an error of the client", async () => {
  await using app = await openApp();
  const { id } = await app.call(`POST ${SESSIONS}`);
  await Deno.writeTextFile(app.server.parts.paths.uploads, "a file where a directory has to be");
  const sent = await post(app, id, `${part("file")}--b--\r\n`);
  expect([sent.status, JSON.parse(sent.body).code]).toEqual([500, "internal"]);
});

it("a file with the name of a partial one survives a start [UPL-5]", async () => {
  await using app = await openApp();
  const { id } = await app.call(`POST ${SESSIONS}`);
  const whole = await upload(app, id, "whole", "film.part");
  const half = join(app.server.parts.paths.uploads, id, `.${crypto.randomUUID()}.part`);
  await Deno.writeTextFile(half, "half");
  await app.stop();
  await using later = await openApp({ dataDir: app.dataDir });
  expect(await later.call(`GET ${SESSIONS}/${id}/media/${whole.name}`)).toBe("whole");
  await expect(Deno.stat(half)).rejects.toThrow();
});

describe("another session's files [UPL-6]", () => {
  it("cannot be read, sent, replaced or removed [UPL-6]", async () => {
    await using app = await openApp({ inMemory: true });
    const sessions = [(await app.call(`POST ${SESSIONS}`)).id, (await app.call(`POST ${SESSIONS}`)).id];
    const files = [
      await upload(app, sessions[0] ?? "", "of one"),
      await upload(app, sessions[1] ?? "", "of two"),
    ];
    for (const [own, other] of [[0, 1], [1, 0]] as const) {
      const id = sessions[own];
      const foreign = files[other];
      expect((await app.send(`GET ${SESSIONS}/${id}/media/${foreign?.name}`)).status).toBe(404);
      const send = { content: "look", media_path: foreign?.path };
      expect((await app.send(`POST ${SESSIONS}/${id}/messages`, send)).status).toBe(400);
      await upload(app, id ?? "", "mine", foreign?.name);
      expect(await Deno.readTextFile(foreign?.path ?? "")).toBe(other === 0 ? "of one" : "of two");
    }
    await app.call(`DELETE ${SESSIONS}/${sessions[0]}`);
    expect((await app.send(`GET ${SESSIONS}/${sessions[0]}/media/${files[0]?.name}`)).status).toBe(404);
    expect(await app.call(`GET ${SESSIONS}/${sessions[1]}/media/${files[1]?.name}`)).toBe("of two");
  });
});

describe("a file replaced by a link [PTH-2]", () => {
  it(`never returns a file outside the session, ${RACES} times (seed ${SEED}) [PTH-2]`, async () => {
    await using app = await openApp({ inMemory: true });
    const chance = createRandom(SEED);
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { path, name } = await upload(app, id, "own");
    const secret = await Deno.makeTempFile();
    await Deno.writeTextFile(secret, "the secret of somebody else");
    const [link, copy] = [`${path}-link`, `${path}-copy`];
    let over = false;
    const swapping = (async () => {
      while (!over) {
        await Deno.remove(link).catch(() => {});
        await Deno.symlink(secret, link).catch(() => {});
        await Deno.rename(link, path).catch(() => {});
        if (chance() < 0.5) await new Promise((resolve) => setTimeout(resolve, 0));
        await Deno.writeTextFile(copy, "own").catch(() => {});
        await Deno.rename(copy, path).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, chance() * 4));
      }
    })();
    const seen = new Map<string, number>();
    for (let race = 0; race < RACES; race++) {
      const read = await app.send(`GET ${SESSIONS}/${id}/media/${name}`);
      const sent = await app.send(`POST ${SESSIONS}/${id}/messages`, { content: "", media_path: path });
      for (const word of [read.status === 200 ? read.body : String(read.status), `sent ${sent.status}`]) {
        seen.set(word, (seen.get(word) ?? 0) + 1);
      }
    }
    over = true;
    await swapping;
    expect(
      [...seen.keys()].filter((word) => !["own", "404", "sent 202", "sent 400", "sent 429"].includes(word)),
    ).toEqual([]);
    expect(seen.get("own")).toBeGreaterThan(0);
    expect(seen.get("404")).toBeGreaterThan(0);
    await Deno.remove(secret);
  }, 20_000 + RACES * 50);
});
