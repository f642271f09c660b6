import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { buildDataPaths } from "../../../src/base/paths.ts";
import { Database } from "../../../src/store/db/database.ts";
import {
  migrate,
  type Migration,
  MIGRATIONS,
  readSchema,
  SCHEMA_VERSION,
} from "../../../src/store/db/migrate.ts";
import { upgrade, UPGRADE_BACKUPS_MAX } from "../../../src/boot/upgrade.ts";
import { dumpSchema, splitFixture } from "../../harness/service/fixture.ts";
import { createTempDir, startServer, svc } from "../../harness/service/process.ts";
import { ROOT } from "../../harness/house/tree.ts";

const FIXTURE = join(ROOT, "test/fixtures", `schema_${String(SCHEMA_VERSION).padStart(4, "0")}.sql`);

/** A migration that this program does not have yet. */
const NEXT: readonly Migration[] = [
  ...MIGRATIONS,
  { name: "next", statements: ["alter table worker add column colour text not null default ''"] },
];

const WORKER = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const ROWS = [
  "insert into migration (version, name, applied_at) values (1, '0001_schema', 1)",
  `insert into worker (id, name, name_key, work_dir, created_at, updated_at)
    values ('${WORKER}', 'Ada', 'ada', '/data/workers/ada', 1, 1)`,
  "insert into memory (scope, key, value, updated_at) values ('global', 'style', 'plain', 1)",
  `insert into task (id, message_id, worker_id, session_key, created_by, instruction, type, cron, status, next_run_at,
      created_at, updated_at)
    values ('01a1fd23-4a4c-746f-99ac-8860e2641169', 'm1', '${WORKER}', 'cli:x', 'operator:admin', 'write', 'scheduled',
      '0 8 1 1 *', 'scheduled', 4102444800000, 1, 1)`,
];

/** Opens a database that the first release wrote. */
async function openFixture(path: string): Promise<Database> {
  const db = await Database.open(`file:${path}`);
  const schema = splitFixture(await Deno.readTextFile(FIXTURE));
  const counters = MIGRATIONS[0]?.statements.filter((sql) => sql.startsWith("insert into counter")) ?? [];
  await db.write([...schema, ...counters, ...ROWS].map((sql) => ({ sql, args: [] })));
  return db;
}

const clock = { ...systemClock, now: () => 1_800_000_000_000 };

function listNames(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map((entry) => entry.name).sort();
  } catch {
    return [];
  }
}

describe("the fixture of the schema", () => {
  it("equals the current schema (otherwise add a migration; before the first release: vitest -u) [BAK-7]", async () => {
    await using db = await Database.open(":memory:");
    await migrate(db, 1);
    await expect(await dumpSchema(db)).toMatchFileSnapshot(FIXTURE);
  });

  it("becomes the schema of a fresh database and keeps its rows [BAK-7]", async () => {
    await using folder = await createTempDir();
    await using db = await openFixture(join(folder.path, "svc.db"));
    await upgrade(db, buildDataPaths(folder.path), clock, NEXT);
    await using fresh = await Database.open(":memory:");
    await migrate(fresh, 1, NEXT);
    const objects = "select type, name, tbl_name, sql from sqlite_master order by type, name";
    expect(await db.read(objects)).toEqual(await fresh.read(objects));
    expect(await db.read("pragma foreign_key_check")).toEqual([]);
    expect(await db.first("pragma integrity_check")).toEqual({ integrity_check: "ok" });
    expect(await db.read("select name, colour from worker")).toEqual([{ name: "Ada", colour: "" }]);
  });

  it("can be served with its workers, tasks and memory", async () => {
    await using folder = await createTempDir();
    await (await openFixture(join(folder.path, "svc.db"))).close();
    await using _server = await startServer({ dataDir: folder.path });
    const ctl = async (...args: string[]) => (await svc(["ctl", ...args], { dataDir: folder.path })).out;
    expect(await ctl("worker", "list")).toContain("\tAda\t");
    expect(await ctl("memory", "get", "--scope", "global", "--key", "style")).toBe("plain\n");
    expect(await ctl("task", "list", "--message-id", "m1")).toContain("scheduled");
  });
});

describe("upgrade", () => {
  it("creates a checked copy before it changes an older database, and none for a new or current one", async () => {
    await using folder = await createTempDir();
    const paths = buildDataPaths(folder.path);
    const db = await Database.open(`file:${join(folder.path, "svc.db")}`);
    await upgrade(db, paths, clock);
    await upgrade(db, paths, clock);
    expect(listNames(paths.backups)).toEqual([]);
    await upgrade(db, paths, clock, NEXT);
    expect((await readSchema(db, NEXT)).version).toBe(SCHEMA_VERSION + 1);
    const copy = `schema-${SCHEMA_VERSION}-2027-01-15T08-00-00.db`;
    expect(listNames(paths.backups)).toEqual([copy]);
    await db.close();
    await using old = await Database.open(`file:${join(paths.backups, copy)}`);
    expect((await readSchema(old, NEXT)).version).toBe(SCHEMA_VERSION);
  });

  it(`keeps the ${UPGRADE_BACKUPS_MAX} newest copies and deletes no other file`, async () => {
    await using folder = await createTempDir();
    const paths = buildDataPaths(folder.path);
    await Deno.mkdir(paths.backups);
    for (let age = 1; age <= UPGRADE_BACKUPS_MAX; age++) {
      const path = join(paths.backups, `schema-0-old-${age}.db`);
      await Deno.writeTextFile(path, "");
      await Deno.utime(path, 1_000_000 - age, 1_000_000 - age);
    }
    await Deno.writeTextFile(join(paths.backups, "mine.txt"), "");
    const db = await openFixture(join(folder.path, "svc.db"));
    await upgrade(db, paths, clock, NEXT);
    await db.close();
    expect(listNames(paths.backups)).toEqual([
      "mine.txt",
      ...Array.from({ length: UPGRADE_BACKUPS_MAX - 1 }, (_, at) => `schema-0-old-${at + 1}.db`),
      `schema-${SCHEMA_VERSION}-2027-01-15T08-00-00.db`,
    ]);
  });

  it("changes nothing if it cannot create a copy, and says so", async () => {
    await using folder = await createTempDir();
    const paths = buildDataPaths(folder.path);
    await Deno.writeTextFile(paths.backups, "a file is in the way");
    await using db = await openFixture(join(folder.path, "svc.db"));
    await expect(upgrade(db, paths, clock, NEXT)).rejects.toThrow(
      /the backup in .* failed .* Nothing was changed/s,
    );
    expect((await readSchema(db, NEXT)).version).toBe(SCHEMA_VERSION);
  });
});

describe("the way back (docs/how-to/upgrade.md)", () => {
  it("is the copy in place of the database: the older program serves the old data", async () => {
    await using folder = await createTempDir();
    const [paths, path] = [buildDataPaths(folder.path), join(folder.path, "svc.db")];
    const ctl = async (...args: string[]) => (await svc(["ctl", ...args], { dataDir: folder.path })).out;
    const first = await startServer({ dataDir: folder.path });
    const worker = await ctl("worker", "create", "-n", "Ada", "-q");
    await first.end("SIGTERM");
    const db = await Database.open(`file:${path}`);
    await upgrade(db, paths, clock, NEXT);
    await db.close();
    expect((await svc(["serve"], { dataDir: folder.path })).code).toBe(1);
    await Deno.copyFile(join(paths.backups, listNames(paths.backups)[0] ?? ""), path);
    for (const end of ["-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
    await using _server = await startServer({ dataDir: folder.path });
    expect(await ctl("worker", "list", "-q")).toBe(worker);
  });
});

describe("svc serve on the data of another program", () => {
  it("refuses a newer version, names both versions, and changes nothing [BAK-6]", async () => {
    await using folder = await createTempDir();
    await changeDatabase(folder.path, [
      `insert into migration (version, name, applied_at) values (${
        SCHEMA_VERSION + 1
      }, 'from the future', 1)`,
    ]);
    expect(await readRefusal(folder.path)).toContain(
      `its schema is version ${SCHEMA_VERSION + 1}, but this program supports version ${SCHEMA_VERSION}`,
    );
  });

  it("refuses a development state, names the way out, and changes nothing", async () => {
    await using folder = await createTempDir();
    await changeDatabase(folder.path, [
      "update migration set name = '0001_start'",
      "insert into migration (version, name, applied_at) values (2, '0002_answers', 1), (3, '0003_people', 1)",
    ]);
    const err = await readRefusal(folder.path);
    expect(err).toContain("before the first release");
    expect(err).toMatch(
      /svc ctl export .*svc ctl apply -f .*users, tokens, pairings, conversations and history/,
    );
  });
});

async function changeDatabase(folder: string, statements: string[]): Promise<void> {
  await (await startServer({ dataDir: folder })).end("SIGTERM");
  await using db = await Database.open(`file:${join(folder, "svc.db")}`);
  await db.write(statements.map((sql) => ({ sql, args: [] })));
}

/**
 * Returns the error of a refused start. Fails if the start changes a file, except the lock, which names a
 * process, and SQLite's shared memory.
 */
async function readRefusal(folder: string): Promise<string> {
  const files = () => listNames(folder).filter((name) => !["svc.lock", "svc.db-shm"].includes(name));
  const sums = () => files().map((name) => [name, computeSum(join(folder, name))]);
  const before = sums();
  const { code, err } = await svc(["serve"], { dataDir: folder });
  expect(code).toBe(1);
  expect(err.trim().split("\n")).toHaveLength(1);
  expect(sums()).toEqual(before);
  return err;
}

function computeSum(path: string): string {
  if (Deno.statSync(path).isDirectory) return listNames(path).join(" ");
  return createHash("sha256").update(Deno.readFileSync(path)).digest("hex");
}
