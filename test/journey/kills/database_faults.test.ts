import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { ForeignReader } from "../../harness/fakes/foreign.ts";
import { createTempDir, svc } from "../../harness/service/process.ts";
import { startConversation, World } from "../../harness/model/scenario.ts";
import { overwriteFile, pause } from "../../harness/model/workload.ts";

vi.setConfig({ testTimeout: 180_000 });

const PAGE_BYTES = 4_096;

describe("a damaged or missing database at the start [DBF-6, DBF-7, DBF-8]", () => {
  const cases: [string, (path: string) => Promise<void>, RegExp][] = [
    [
      "garbage",
      (path) => Deno.writeTextFile(path, "this is no database ".repeat(5_000)),
      /damaged or not a database/,
    ],
    ["a zeroed first page", (path) => overwriteFile(path, 0, PAGE_BYTES, 0), /damaged or not a database/],
    ["half of the file", (path) => Deno.truncate(path, 20 * PAGE_BYTES), /damaged or not a database/],
    ["an empty file", (path) => Deno.truncate(path, 0), /its file is empty/],
    ["no file", (path) => Deno.remove(path), /its file is gone/],
  ];
  it("exit 1 with the way out, and nothing is created, renamed or deleted", async () => {
    await using world = await World.open();
    const { server } = await startConversation(world);
    await server.end("SIGTERM");
    const backup = world.path("keep.db");
    await Deno.copyFile(world.database, backup);
    for (const [what, spoil, words] of cases) {
      await spoil(world.database);
      const before = await listFiles(world.dataDir);
      const started = await svc(["serve"], { dataDir: world.dataDir, env: world.env });
      expect([what, started.code, started.err]).toEqual([what, 1, expect.stringMatching(words)]);
      expect([what, started.err]).toEqual([what, expect.stringContaining("svc restore <file>")]);
      expect([what, await listFiles(world.dataDir)]).toEqual([what, before]);
      await Deno.copyFile(backup, world.database);
    }
    const again = await startConversation(world);
    expect(await again.server.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  it("exit 1 with a message if no database can be created [DBF-8]", async () => {
    await using folder = await createTempDir();
    await Deno.writeTextFile(join(folder.path, "file"), "");
    const start = (env: Record<string, string>) => svc(["serve"], { dataDir: folder.path, env });
    const places: [Record<string, string>, RegExp][] = [
      [{ SVC_DATABASE__URL: `file:${folder.path}/none/svc.db` }, /Check that the directory exists/],
      [
        { SVC_DATABASE__URL: `file:${folder.path}` },
        /Check that its directory exists and that this user may write/,
      ],
      [
        { SVC_DATA_DIR: join(folder.path, "file") },
        /Cannot use the data directory .*file: the path or its parent is not a directory.*Set data_dir/,
      ],
      [{ SVC_DATA_DIR: join(folder.path, "file", "below") }, /Cannot use the data directory/],
    ];
    for (const [env, words] of places) {
      const started = await start(env);
      expect([env, started.code, started.err]).toEqual([env, 1, expect.stringMatching(words)]);
    }
  });
});

describe("a database that is damaged under the running service", () => {
  it("a long read transaction raises an alarm when the -wal exceeds 64 MB, and the -wal shrinks after it ends [DBF-12]", async () => {
    await using world = await World.open();
    const { server, say } = await startConversation(world);
    await say("say first");
    await using reader = await ForeignReader.open(world.database);
    const text = `say ${"x".repeat(250_000)}`;
    const bytes = async () => (await Deno.stat(`${world.database}-wal`)).size;
    for (let i = 0; await bytes() < 70_000_000; i++) {
      expect(i).toBeLessThan(400);
      await Promise.all(Array.from({ length: 4 }, () => say(text)));
    }
    while (!server.stderr.includes("has grown to")) await pause();
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(Number(/^svc_database_wal_bytes (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(64 * 1024 * 1024);
    await reader.close();
    for (let i = 0; await bytes() > 20_000_000; i++) {
      expect(i).toBeLessThan(100);
      await say(text);
    }
    while (!server.stderr.includes("is short again")) await pause();
    await server.end("SIGKILL");
  });
});

/** Lists names, sizes and times of all files with content, except the lock. */
async function listFiles(folder: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const entry of Deno.readDir(folder)) {
    if (entry.name === "svc.lock") continue;
    const { size, mtime } = await Deno.stat(join(folder, entry.name));
    if (entry.name.endsWith("-shm") || entry.name.endsWith("-wal") && size === 0) continue;
    found.push([entry.name, entry.isDirectory ? 0 : size, mtime?.getTime()]);
  }
  return found.sort();
}
