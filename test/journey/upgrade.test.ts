import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { dataPaths } from "../../src/base/paths.ts";
import { Database } from "../../src/store/database.ts";
import {
  migrate,
  type Migration,
  MIGRATIONS,
  SCHEMA_VERSION,
  schemaVersion,
} from "../../src/store/migrate.ts";
import { upgrade, UPGRADE_BACKUPS_MAX } from "../../src/boot/upgrade.ts";
import { dumpSchema, fixtureStatements } from "../harness/fixture.ts";
import { startServer, svc, tempDir } from "../harness/process.ts";
import { ROOT } from "../harness/tree.ts";

const FIXTURES = join(ROOT, "test/fixtures");
const fixtures = [...Deno.readDirSync(FIXTURES)].map((entry) => entry.name).filter((name) =>
  /^schema_\d+\.sql$/.test(name)
)
  .sort();

/** A migration that this program does not have yet. */
const NEXT: readonly Migration[] = [
  ...MIGRATIONS,
  { name: "next", statements: ["alter table worker add column colour text not null default ''"] },
];

async function fixtureDatabase(name: string, path: string): Promise<Database> {
  const db = await Database.open(`file:${path}`);
  const text = await Deno.readTextFile(join(FIXTURES, name));
  await db.write(fixtureStatements(text).map((sql) => ({ sql, args: [] })));
  return db;
}

const clock = { ...systemClock, now: () => 1_800_000_000_000 };

function names(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map((entry) => entry.name).sort();
  } catch {
    return [];
  }
}

describe("fixtures of schemas", () => {
  it("there is one for each schema, and the newest equals the current schema (otherwise: make fixture) (reliability BAK-7)", async () => {
    expect(fixtures).toHaveLength(SCHEMA_VERSION);
    const db = await Database.open(":memory:");
    await migrate(db, 1);
    const text = await Deno.readTextFile(join(FIXTURES, fixtures.at(-1) ?? ""));
    expect(text.startsWith(await dumpSchema(db))).toBe(true);
    await db.close();
  });

  it.each(fixtures)(
    "%s becomes the schema of a fresh database and keeps its rows (reliability BAK-7)",
    async (name) => {
      await using folder = await tempDir();
      const db = await fixtureDatabase(name, join(folder.path, "svc.db"));
      const before = await db.first("select count(*) as workers, min(name) as name from worker");
      await upgrade(db, dataPaths(folder.path), clock);
      const fresh = await Database.open(":memory:");
      await migrate(fresh, 1);
      const objects = "select type, name, tbl_name, sql from sqlite_master order by type, name";
      expect(await db.read(objects)).toEqual(await fresh.read(objects));
      expect(await db.read("pragma foreign_key_check")).toEqual([]);
      expect(await db.first("pragma integrity_check")).toEqual({ integrity_check: "ok" });
      expect(await db.first("select count(*) as workers, min(name) as name from worker")).toEqual(before);
      expect(before).toMatchObject({ name: "Ada" });
      await db.close();
      await fresh.close();
    },
  );

  it.each(fixtures)("%s can be served: its workers, tasks and memory are there", async (name) => {
    await using folder = await tempDir();
    await (await fixtureDatabase(name, join(folder.path, "svc.db"))).close();
    await using _server = await startServer({ dataDir: folder.path });
    const ctl = async (...args: string[]) => (await svc(["ctl", ...args], { dataDir: folder.path })).out;
    expect(await ctl("worker", "list")).toContain("\tAda\t");
    expect(await ctl("memory", "get", "--scope", "global", "--key", "style")).toBe("plain\n");
    expect(await ctl("task", "list", "--message-id", "m1")).toContain("scheduled");
  });
});

describe("upgrade()", () => {
  it("makes a checked copy before an older database is changed, and none for a new one or the same", async () => {
    await using folder = await tempDir();
    const paths = dataPaths(folder.path);
    const db = await Database.open(`file:${join(folder.path, "svc.db")}`);
    await upgrade(db, paths, clock);
    await upgrade(db, paths, clock);
    expect(names(paths.backups)).toEqual([]);
    await upgrade(db, paths, clock, NEXT);
    expect(await schemaVersion(db)).toBe(SCHEMA_VERSION + 1);
    const copy = `schema-${SCHEMA_VERSION}-2027-01-15T08-00-00.db`;
    expect(names(paths.backups)).toEqual([copy]);
    await db.close();
    const old = await Database.open(`file:${join(paths.backups, copy)}`);
    expect(await schemaVersion(old)).toBe(SCHEMA_VERSION);
    await old.close();
  });

  it(`keeps the ${UPGRADE_BACKUPS_MAX} newest copies and nothing else of ours`, async () => {
    await using folder = await tempDir();
    const paths = dataPaths(folder.path);
    await Deno.mkdir(paths.backups);
    for (let age = 1; age <= UPGRADE_BACKUPS_MAX; age++) {
      const path = join(paths.backups, `schema-0-old-${age}.db`);
      await Deno.writeTextFile(path, "");
      await Deno.utime(path, 1_000_000 - age, 1_000_000 - age);
    }
    await Deno.writeTextFile(join(paths.backups, "mine.txt"), "");
    const db = await fixtureDatabase(fixtures.at(-1) ?? "", join(folder.path, "svc.db"));
    await upgrade(db, paths, clock, NEXT);
    await db.close();
    expect(names(paths.backups)).toEqual([
      "mine.txt",
      ...Array.from({ length: UPGRADE_BACKUPS_MAX - 1 }, (_, at) => `schema-0-old-${at + 1}.db`),
      `schema-${SCHEMA_VERSION}-2027-01-15T08-00-00.db`,
    ]);
  });

  it("changes nothing when no copy can be made, and says so", async () => {
    await using folder = await tempDir();
    const paths = dataPaths(folder.path);
    await Deno.writeTextFile(paths.backups, "a file is in the way");
    const db = await fixtureDatabase(fixtures.at(-1) ?? "", join(folder.path, "svc.db"));
    await expect(upgrade(db, paths, clock, NEXT)).rejects.toThrow(
      /no backup of it could be made .* Nothing was changed/s,
    );
    expect(await schemaVersion(db)).toBe(SCHEMA_VERSION);
    await db.close();
  });
});

describe("the way back (docs/how-to/upgrade.md)", () => {
  it("is the copy in place of the database: the older program serves the old data", async () => {
    await using folder = await tempDir();
    const [paths, path] = [dataPaths(folder.path), join(folder.path, "svc.db")];
    const ctl = async (...args: string[]) => (await svc(["ctl", ...args], { dataDir: folder.path })).out;
    const first = await startServer({ dataDir: folder.path });
    const worker = await ctl("worker", "create", "-n", "Ada", "-q");
    await first.end("SIGTERM");
    const db = await Database.open(`file:${path}`);
    await upgrade(db, paths, clock, NEXT);
    await db.close();
    expect((await svc(["serve"], { dataDir: folder.path })).code).toBe(1);
    await Deno.copyFile(join(paths.backups, names(paths.backups)[0] ?? ""), path);
    for (const end of ["-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
    await using _server = await startServer({ dataDir: folder.path });
    expect(await ctl("worker", "list", "-q")).toBe(worker);
  });
});

describe("svc serve on the data of a newer version", () => {
  it("refuses, names both versions, and changes nothing (reliability BAK-6)", async () => {
    await using folder = await tempDir();
    const path = join(folder.path, "svc.db");
    await (await startServer({ dataDir: folder.path })).end("SIGTERM");
    const db = await Database.open(`file:${path}`);
    await db.write([{
      sql: "insert into migration (version, name, applied_at) values (?, 'from the future', 1)",
      args: [SCHEMA_VERSION + 1],
    }]);
    await db.close();
    // Except the lock, which names a process, and SQLite's shared memory.
    const files = () => names(folder.path).filter((name) => !["svc.lock", "svc.db-shm"].includes(name));
    const sums = () => files().map((name) => [name, sumOf(join(folder.path, name))]);
    const before = sums();
    const { code, err } = await svc(["serve"], { dataDir: folder.path });
    expect(code).toBe(1);
    expect(err).toContain(
      `its schema is version ${SCHEMA_VERSION + 1}, this program knows ${SCHEMA_VERSION}`,
    );
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(sums()).toEqual(before);
  });
});

function sumOf(path: string): string {
  if (Deno.statSync(path).isDirectory) return names(path).join(" ");
  return createHash("sha256").update(Deno.readFileSync(path)).digest("hex");
}
