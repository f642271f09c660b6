import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { unpackArchive } from "../../../src/base/archive.ts";
import { Database, inspect } from "../../../src/store/db/database.ts";
import { SCHEMA_VERSION } from "../../../src/store/db/migrate.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { type Client, openClient } from "../../harness/service/client.ts";
import { World } from "../../harness/model/scenario.ts";
import { createTempDir, startServer, svc } from "../../harness/service/process.ts";
import { ctl, splitWords } from "../../harness/terminal.ts";
import { overwriteFile, readRows } from "../../harness/model/workload.ts";

// CI makes fifty.
const BACKUPS = Number(Deno.env.get("SVC_TEST_BACKUPS") ?? 5);
const APART = await areApart("/tmp", "/dev/shm");
const ENV = { SVC_ENGINES__DEFAULT: "echo" };

vi.setConfig({ testTimeout: 60_000 + BACKUPS * 2_000 });

describe("svc ctl system backup and svc restore [BAK-1, BAK-4]", () => {
  it("everything is restored, in another directory: rows, replies, logs, uploads, logins [BAK-4]", async () => {
    await using world = await World.serve({ env: ENV });
    const [second, file] = [world.path("second"), world.path("backup.tar")];
    await Deno.mkdir(second);
    const { refreshToken, token } = world.api;
    await createConversation(world.api);
    const before = await readEverything(world.api);
    // The command runs in another directory, with only an address and a token.
    const words = splitWords("ctl system backup ../backup.tar --include-key --password-stdin --json");
    const env = { SVC_URL: world.server.url, SVC_TOKEN: token };
    const made = await svc(words, { dataDir: second, env, stdin: "pass\n" });
    expect(made).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(made.out)).toEqual({ file, bytes: (await Deno.stat(file)).size });
    expect((await Deno.stat(file)).mode ?? 0).toBe(0o100600);
    await world.server.end("SIGTERM");
    const restored = await svc(["restore", file, "--yes"], { dataDir: second });
    expect(restored.code, restored.err).toBe(0);
    await using server = await startServer({ dataDir: second, env: world.env });
    const api = await openClient(server.url);
    const after = await readEverything(api);
    // A log is history and keeps the old path; all other paths were rewritten.
    const { log, ...rest } = after;
    const { log: logBefore, ...moved } = before;
    expect(log).toBe(logBefore);
    expect(rest).toEqual(JSON.parse(JSON.stringify(moved).replaceAll(world.dataDir, second)));
    expect(JSON.stringify(after)).toContain(second);
    // The key and the logins are the same, so an old refresh token is still valid.
    expect((await api.send("POST /api/auth/refresh", { refresh_token: refreshToken })).status).toBe(200);
    for (const name of ["svc.db", "secret.key", "logs", "uploads"]) {
      expect(((await Deno.stat(join(second, name))).mode ?? 0) & 0o077, name).toBe(0);
    }
  });

  it(`${BACKUPS} backups during messages: each holds all data acknowledged before its start [BAK-1]`, async () => {
    await using app = await openApp();
    await using folder = await createTempDir();
    const { id } = await app.call("POST /api/local/sessions");
    const acknowledged: string[] = [];
    const written = new AbortController();
    const writing = (async () => {
      for (let i = 0; !written.signal.aborted; i++) {
        acknowledged.push(
          (await app.call(`POST /api/local/sessions/${id}/messages`, { content: `m${i}` })).message_id,
        );
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    for (let round = 0; round < BACKUPS; round++) {
      const before = [...acknowledged];
      const file = join(folder.path, `${round}.tar`);
      expect((await ctl(app, ["system", "backup", file])).code).toBe(0);
      const unpacked = join(folder.path, String(round));
      await Deno.mkdir(unpacked);
      await unpackArchive((await Deno.open(file)).readable, unpacked);
      expect(await inspect(join(unpacked, "svc.db"))).toEqual([]);
      const rows = await readRows<{ id: string }>(unpacked, "select id from inbound_message");
      const found = new Set(rows.map((row) => row.id));
      expect(before.filter((one) => !found.has(one))).toEqual([]);
    }
    written.abort();
    await writing;
    await expect(Deno.stat(app.server.parts.paths.backup)).rejects.toThrow();
  });

  it.skipIf(!APART)("a database on another file system is kept and restored as well", async () => {
    const elsewhere = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "svc-test-" });
    try {
      await using world = await World.serve({
        env: { ...ENV, SVC_DATABASE__URL: `file:${join(elsewhere, "far.db")}` },
      });
      const { dataDir, env } = world;
      const file = world.path("backup.tar");
      await createConversation(world.api);
      expect((await svc(["ctl", "system", "backup", file], { dataDir, env })).code).toBe(0);
      await world.api.call("POST /api/workers", { name: "Late" });
      await world.server.end("SIGTERM");
      const restored = await svc(["restore", file, "--yes"], { dataDir, env });
      expect(restored.code, restored.err).toBe(0);
      const [aside = ""] = [...Deno.readDirSync(dataDir)].map(({ name }) => name).filter((name) =>
        name.startsWith("before-restore-")
      );
      expect((await Deno.stat(join(dataDir, aside, "far.db"))).mode ?? 0).toBe(0o100600);
      expect([...Deno.readDirSync(elsewhere)].map(({ name }) => name)).not.toContain("far.db.part");
      const { api } = await world.start();
      const workers = await api.call("GET /api/workers");
      expect(workers.map((one: { name: string }) => one.name)).not.toContain("Late");
      expect(workers).toHaveLength(1);
    } finally {
      await Deno.remove(elsewhere, { recursive: true });
    }
  });

  it("a restore is refused while the service runs, and asks before it changes anything [BAK-4]", async () => {
    await using world = await World.serve({ env: ENV });
    const { server, dataDir } = world;
    const file = world.path("backup.tar");
    await createConversation(world.api);
    expect((await svc(["ctl", "system", "backup", file], { dataDir })).code).toBe(0);
    const running = await svc(["restore", file, "--yes"], { dataDir });
    const err = expect.stringContaining(`pid ${server.child.pid}`);
    expect(running).toMatchObject({ code: 5, out: "", err });
    await server.end("SIGTERM");
    const before = await listFiles(dataDir);
    expect((await svc(["restore", file], { dataDir, stdin: "n\n" })).code).toBe(7);
    expect(await svc(["restore", file], { dataDir })).toMatchObject({
      code: 2,
      err: expect.stringContaining("--yes"),
    });
    expect(await listFiles(dataDir)).toEqual(before);
    const done = await svc(["restore", file], { dataDir, stdin: "yes\n" });
    expect(done.code).toBe(0);
    const aside = /before-restore-[\d-]+/.exec(done.err)?.[0] ?? "";
    expect((await listFiles(join(dataDir, aside))).map(([name]) => name)).toEqual(
      expect.arrayContaining(["database.json", "secret.key", "svc.db"]),
    );
  });

  it("--new-key makes old tokens invalid [BAK-4]", async () => {
    await using world = await World.serve();
    const { api: old, dataDir } = world;
    const file = world.path("backup.tar");
    const key = await Deno.readTextFile(join(dataDir, "secret.key"));
    const words = ["ctl", "system", "backup", file, "--include-key", "--password-stdin"];
    expect((await svc(words, { dataDir, stdin: "pass\n" })).code).toBe(0);
    await world.server.end("SIGTERM");
    expect((await svc(["restore", file, "--yes", "--new-key"], { dataDir })).code).toBe(0);
    const { server, api } = await world.start();
    expect(await Deno.readTextFile(join(dataDir, "secret.key"))).not.toBe(key);
    const withOld = await fetch(`${server.url}/api/workers`, {
      headers: { authorization: `Bearer ${old.token}` },
    });
    expect((await withOld.json()).code).toBe("unauthenticated");
    expect((await api.send("POST /api/auth/refresh", { refresh_token: old.refreshToken })).status).toBe(401);
  });

  it("refuses an incomplete or changed backup with a reason, and changes nothing [BAK-4]", async () => {
    await using world = await World.open({ env: ENV });
    const [folder, dataDir, good] = [world.path("."), world.dataDir, await createBackup(world)];
    const bytes = await Deno.readFile(good);
    const write = async (name: string, content: Uint8Array | string) => {
      const path = world.path(name);
      if (typeof content === "string") await Deno.writeTextFile(path, content);
      else await Deno.writeFile(path, content);
      return path;
    };
    const repack = (name: string, change: (root: string) => Promise<void>) =>
      repackArchive(folder, good, name, change);
    const flipped = bytes.slice();
    const middle = Math.floor(bytes.length / 2);
    flipped[middle] = (flipped[middle] ?? 0) ^ 1;
    const cases: [string, RegExp][] = [
      [await write("cut.tar", bytes.subarray(0, bytes.length - 4_096)), /cut off|truncated/],
      [await write("half.tar", bytes.subarray(0, middle)), /truncated/],
      [await write("flipped.tar", flipped), /svc\.db does not match its checksum|damaged/],
      [await write("text.tar", "this is no archive ".repeat(100)), /not a tar archive/],
      [await write("empty.tar", ""), /truncated/],
      [
        await repack("foreign", (root) => Deno.writeTextFile(join(root, "else.txt"), "x")),
        /not a backup/,
      ],
      [
        await repack("outside", (root) => Deno.symlink("/etc", join(root, "logs", "etc"))),
        /logs\/etc/,
      ],
      [
        await repack("newer", async (root) => {
          const path = join(root, "manifest.json");
          const manifest = JSON.parse(await Deno.readTextFile(path));
          await Deno.writeTextFile(path, JSON.stringify({ ...manifest, schema_version: SCHEMA_VERSION + 1 }));
        }),
        /schema is version/,
      ],
      [
        await repack("development", async (root) => {
          await change(root, "update migration set name = '0001_start'");
        }),
        /before the first release/,
      ],
      [
        await repack("broken", async (root) => {
          await overwriteFile(join(root, "svc.db"), 4096 * 10, 4096 * 20, 7);
        }),
        /damaged/,
      ],
      [
        // Only the check of the whole file finds this damage.
        await repack("incomplete", async (root) => {
          await change(
            root,
            "insert into worker_department (worker_id, department_id) values ('none', 'none')",
          );
        }),
        /damaged: a row of \w+ refers to a missing row/,
      ],
    ];
    // An unreadable local file is wrong usage (contract 8.7).
    const unreadable: [string, RegExp][] = [
      [world.path("none.tar"), /does not exist/],
      [folder, /is a directory/],
    ];
    const before = await listFiles(dataDir);
    for (const [path, words] of [...cases, ...unreadable]) {
      const refused = await svc(["restore", path, "--yes"], { dataDir });
      const code = unreadable.some(([one]) => one === path) ? 2 : 1;
      expect(refused, path).toMatchObject({ code, out: "", err: expect.stringMatching(words) });
      expect(refused.err, path).toContain("Nothing was changed");
      expect(await listFiles(dataDir), path).toEqual(before);
    }
  });

  it("an interrupted restore prevents the next start, and can be completed by running it again", async () => {
    await using world = await World.open({ env: ENV });
    const { dataDir, env } = world;
    const file = await createBackup(world);
    // Simulates a kill after the old database was moved away and before the new one was moved in.
    const aside = join(dataDir, "before-restore-x");
    await Deno.mkdir(aside);
    await Deno.rename(join(dataDir, "svc.db"), join(aside, "svc.db"));
    await Deno.writeTextFile(join(dataDir, "restoring"), aside);
    const start = await svc(["serve"], { dataDir, env });
    expect(start).toMatchObject({ code: 1, err: expect.stringContaining(aside) });
    expect((await svc(["restore", file, "--yes"], { dataDir })).code).toBe(0);
    const { api } = await world.start();
    expect(await api.call("GET /api/workers")).toHaveLength(1);
  });
});

describe("POST /api/system/backup (contract 5)", () => {
  it("is for operators with write:system only, one at a time, and leaves nothing behind when the client disconnects", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    // Larger than the buffers in between, so that the backup is really in progress.
    await Deno.mkdir(join(app.dataDir, "uploads", "x"), { recursive: true });
    await Deno.writeFile(join(app.dataDir, "uploads", "x", "big"), new Uint8Array(64_000_000));
    const request = async () =>
      await fetch(`${app.url}/api/system/backup`, {
        method: "POST",
        headers: { authorization: `Bearer ${await app.token()}` },
      });
    const first = await request();
    expect(first.headers.get("content-type")).toBe("application/x-tar");
    expect(first.headers.get("content-disposition")).toMatch(/^attachment; filename="svc-\d{8}-\d{6}\.tar"$/);
    const second = await request();
    expect(second.status).toBe(409);
    expect((await second.json()).detail).toContain("another backup");
    await first.body?.cancel();
    while (await Deno.stat(app.server.parts.paths.backup).then(() => true, () => false)) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const third = await request();
    expect(third.status).toBe(200);
    expect((await new Response(third.body).bytes()).length).toBeGreaterThan(64_000_000);
    expect(await app.db.read("select kind, actor from journal where kind = 'system.backup'")).toHaveLength(2);
  });

  it("ctl replaces a file only with --force, and an interrupted response leaves no file", async () => {
    await using app = await openApp();
    await using folder = await createTempDir();
    const file = join(folder.path, "b.tar");
    await Deno.writeTextFile(file, "precious");
    expect(await ctl(app, ["system", "backup", file])).toMatchObject({
      code: 5,
      out: "",
      err: expect.stringContaining("--force"),
    });
    expect(await Deno.readTextFile(file)).toBe("precious");
    expect((await ctl(app, ["system", "backup", "--force", "-q", file])).out).toBe(`${file}\n`);
    expect((await ctl(app, ["system", "backup", join(folder.path, "none", "b.tar")])).code).toBe(1);
    expect((await ctl(app, "system backup ''")).code).toBe(2);
    // A proxy that ends the response early in valid HTTP.
    const cut = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      () => new Response("x".repeat(5_000)),
    );
    const env = { SVC_URL: `http://127.0.0.1:${cut.addr.port}`, SVC_TOKEN: "x" };
    const half = await ctl(null, ["system", "backup", join(folder.path, "half.tar")], { env });
    await cut.shutdown();
    expect(half).toMatchObject({ code: 6, out: "" });
    expect([...Deno.readDirSync(folder.path)].map((entry) => entry.name)).toEqual(["b.tar"]);
  });
});

/** Creates a conversation and a backup of it, and stops the service. */
async function createBackup(world: World): Promise<string> {
  const file = world.path("backup.tar");
  const { server, api } = await world.start();
  await createConversation(api);
  expect((await svc(["ctl", "system", "backup", file], { dataDir: world.dataDir })).code).toBe(0);
  await server.end("SIGTERM");
  return file;
}

async function createConversation(api: Client): Promise<void> {
  await api.call("POST /api/workers", { name: "Ada" });
  const { id } = await api.call("POST /api/local/sessions");
  const form = new FormData();
  form.append("file", new Blob(["some text"]), "note.txt");
  const { path } = await api.upload(`/api/local/sessions/${id}/media`, form);
  await api.call(`POST /api/local/sessions/${id}/messages`, { content: "@Ada hello", media_path: path });
  const events = await api.stream(id, { "last-event-id": "0" });
  await events.until((one) => one.named("message").length === 1);
  await events.close();
}

/** Reads everything that a client can see, including media and logs. */
async function readEverything(api: Client): Promise<Record<string, unknown>> {
  const [session] = await api.call("GET /api/local/sessions");
  const [execution] = await api.call("GET /api/executions");
  const messages = await api.call(`GET /api/local/sessions/${session.id}/messages`);
  const name = messages[0].media.name;
  return {
    workers: await api.call("GET /api/workers"),
    session,
    execution,
    messages,
    tasks: await api.call(`GET /api/tasks?session_key=local:${session.id}`),
    runs: await api.call("GET /api/system/executions"),
    log: await api.text(`/api/executions/${execution.id}/logs`),
    media: await api.text(`/api/local/sessions/${session.id}/media/${name}`),
  };
}

/** Lists names and contents of all files of a folder except the lock. */
async function listFiles(folder: string): Promise<[string, number][]> {
  const found: [string, number][] = [];
  for await (const entry of Deno.readDir(folder)) {
    if (entry.name === "svc.lock") continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory) {
      for (const [name, size] of await listFiles(path)) found.push([`${entry.name}/${name}`, size]);
    } else found.push([entry.name, (await Deno.stat(path)).size]);
  }
  return found.sort(([a], [b]) => a < b ? -1 : 1);
}

async function change(root: string, sql: string): Promise<void> {
  const db = await Database.open(`file:${join(root, "svc.db")}`);
  await db.read("pragma foreign_keys = off");
  await db.write([{ sql, args: [] }]);
  await db.close();
  for (const end of ["-wal", "-shm"]) await Deno.remove(join(root, `svc.db${end}`)).catch(() => {});
}

/** Changes files of the archive and packs it again with new checksums by other programs. */
async function repackArchive(
  folder: string,
  archive: string,
  name: string,
  change: (root: string) => Promise<void>,
): Promise<string> {
  const root = join(folder, name);
  await Deno.mkdir(root);
  const sh = async (script: string) => {
    const { code } = await new Deno.Command("sh", { args: ["-ec", script], cwd: root }).output();
    expect(code, script).toBe(0);
  };
  await sh(`tar xf ${archive} && sha256sum --quiet -c SHA256SUMS`);
  await change(root);
  await sh("find . -type f ! -name SHA256SUMS | sed 's#^./##' | xargs sha256sum > SHA256SUMS");
  const out = join(folder, `${name}.tar`);
  await sh(
    `find . ! -type d ! -name SHA256SUMS | sed 's#^./##' | tar cf ${out} --no-recursion -T - SHA256SUMS`,
  );
  return out;
}

/** Returns whether both exist on separate file systems. */
async function areApart(one: string, other: string): Promise<boolean> {
  const devices = await Promise.all(
    [one, other].map((path) => Deno.stat(path).then(({ dev }) => dev, () => null)),
  );
  return !devices.includes(null) && devices[0] !== devices[1];
}
