import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Database, guard } from "../../src/store/db/database.ts";
import { migrate, MIGRATIONS, readSchema, SCHEMA_VERSION } from "../../src/store/db/migrate.ts";
import { createTempDir } from "../harness/service/process.ts";

// The same statements must have the same effect on a local file and on a server. CI names one in SVC_TEST_LIBSQL_URL.
const REMOTE_URL = Deno.env.get("SVC_TEST_LIBSQL_URL");
const PLACES = [
  { name: "a local file", open: (path: string) => Database.open(`file:${join(path, "test.db")}`) },
  ...(REMOTE_URL === undefined ? [] : [{ name: "a remote server", open: () => Database.open(REMOTE_URL) }]),
];

describe.each(PLACES)("Database on $name", ({ open }) => {
  it("write commits all statements of a batch or none", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await open(folder.path));
    await expect(db.write([insert("a", 1), insert("a", 2)])).rejects.toThrow(/UNIQUE/);
    expect(await rows(db)).toEqual([]);
    await db.write([insert("a", 1), insert("b", 2)]);
    expect(await rows(db)).toEqual([["a", 1], ["b", 2]]);
  });

  it("write() rolls the batch back when a guard is lost, and returns that without an error (architecture, sentence 3)", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await open(folder.path));
    await db.write([insert("a", 1)]);
    const lost = await db.write([...guard("update thing set n = 5 where id = ?", ["x"]), insert("b", 2)]);
    expect(lost).toEqual({ won: false, rows: [] });
    expect(await rows(db)).toEqual([["a", 1]]);
    const won = await db.write([
      ...guard("update thing set n = 5 where id = ? and n = 1", ["a"]),
      insert("b", 2),
    ]);
    expect(won.won).toBe(true);
    expect(await rows(db)).toEqual([["a", 5], ["b", 2]]);
  });

  it("write() gives each claim to exactly one of two clients (architecture, sentence 3)", async () => {
    await using folder = await createTempDir();
    await using one = await prepare(await open(folder.path));
    await using two = await open(folder.path);
    const claims = Array.from({ length: 100 }, (_, index) => `t${index}`);
    await one.write(claims.map((id) => insert(id, 0)));
    const claim = (db: Database, by: number) => (id: string) =>
      db.write(guard("update thing set n = ? where id = ? and n = 0", [by, id]));
    const results = await Promise.all([...claims.map(claim(one, 1)), ...claims.map(claim(two, 2))]);
    expect(results.filter(({ won }) => won)).toHaveLength(claims.length);
    expect((await rows(one)).every(([, n]) => n === 1 || n === 2)).toBe(true);
  });

  it("read() and first() return the same rows in order, with unchanged values and JSON as text", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await open(folder.path));
    const odd = 'a "quoted" \\ line\nwith é, 日本 and \u0001';
    await db.write(Array.from({ length: 300 }, (_, n) => insert(`${odd}${n}`, n)));
    const sql =
      `select id, n, n / 4.0 as part, nullif(n, n) as unset, json_object('id', id, 'list', json('[1,{}]')) as json,
        9007199254740991 - n as large, '[1]' as text
      from thing where n < ? order by n desc`;
    const expected = Array.from({ length: 300 }, (_, index) => {
      const n = 299 - index;
      const id = `${odd}${n}`;
      const json = JSON.stringify({ id, list: [1, {}] });
      return { id, n, part: n / 4, unset: null, json, large: 9007199254740991 - n, text: "[1]" };
    });
    expect(await db.read(sql, [300])).toEqual(expected);
    expect(await db.first(sql, [300])).toEqual(expected[0]);
    expect([await db.read(sql, [0]), await db.first(sql, [0])]).toEqual([[], null]);
    expect(await db.read(`with few as (${sql}) select n from few order by n`, [2])).toEqual([{ n: 0 }, {
      n: 1,
    }]);
  });

  it("write() settles each write of a group separately when one of them fails", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await open(folder.path));
    const results = await Promise.allSettled([
      db.write([insert("a", 1)]),
      db.write([insert("a", 2)]),
      db.write(guard("update thing set n = 9 where id = 'none'", [])),
      db.write([insert("b", 3)]),
    ]);
    expect(results.map((result) => result.status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect(results[2]).toMatchObject({ value: { won: false } });
    expect(await rows(db)).toEqual([["a", 1], ["b", 3]]);
  });

  it("read() returns text, integers and null unchanged", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await open(folder.path));
    const odd = ["1", "", "ü\n\t'\"\\", "👩‍🚀", "x".repeat(300_000)];
    await db.write(odd.map((id, n) => insert(id, n)));
    const found = await db.read<{ id: string; n: number }>("select id, n from thing order by n");
    expect(found.map((row) => row.id)).toEqual(odd);
    expect(await db.first("select null as gone, 8640000000000000 as late")).toMatchObject({
      gone: null,
      late: 8_640_000_000_000_000,
    });
  });

  it("migrate() applies the newest schema once", async () => {
    await using folder = await createTempDir();
    await using db = await open(folder.path);
    await drop(db);
    expect(await migrate(db, 1)).toEqual({ from: 0, to: SCHEMA_VERSION });
    expect(await migrate(db, 2)).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION });
    expect(await db.read("select version, name, applied_at from migration")).toMatchObject(
      MIGRATIONS.map(({ name }, index) => ({ version: index + 1, name, applied_at: 1 })),
    );
    await drop(db);
  });
});

describe("Database on a local file", () => {
  it("write() waits for a foreign lock without blocking, and continues when the lock is released [DBF-3, DBF-4]", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await Database.open(`file:${join(folder.path, "test.db")}`));
    const holder = await takeLock(join(folder.path, "test.db"), 4_000);
    let longest = 0;
    let last = performance.now();
    const ticks = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    const started = performance.now();
    await Promise.all([db.write([insert("a", 1)]), db.write([insert("b", 2)])]);
    clearInterval(ticks);
    expect(performance.now() - started).toBeGreaterThan(1_000);
    // A blocking wait would stop the event loop as long as the lock exists, for 4 s.
    expect(longest).toBeLessThan(2_500);
    await holder.released;
    expect(await rows(db)).toEqual([["a", 1], ["b", 2]]);
  });

  it("write() fails with unavailable when a foreign lock stays [DBF-3]", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await Database.open(`file:${join(folder.path, "test.db")}`));
    const holder = await takeLock(join(folder.path, "test.db"), 10_000);
    await expect(db.write([insert("a", 1)])).rejects.toMatchObject({ code: "unavailable" });
    await holder.released;
    await db.write([insert("b", 2)]);
    expect(await rows(db)).toEqual([["b", 2]]);
  });

  it("open() makes connections durable and checks references [DUR-8]", async () => {
    await using folder = await createTempDir();
    await using db = await Database.open(`file:${join(folder.path, "test.db")}`);
    expect(await db.first("pragma journal_mode")).toMatchObject({ journal_mode: "wal" });
    expect(await db.first("pragma synchronous")).toMatchObject({ synchronous: 2 });
    expect(await db.first("pragma foreign_keys")).toMatchObject({ foreign_keys: 1 });
  });

  it("write() reconnects after a foreign lock with the same settings [DUR-8]", async () => {
    await using folder = await createTempDir();
    await using db = await prepare(await Database.open(`file:${join(folder.path, "test.db")}`));
    const pragmas = async () => {
      const names = ["journal_mode", "synchronous", "foreign_keys", "journal_size_limit"];
      return await Promise.all(
        names.map(async (name) => Object.values(await db.first(`pragma ${name}`) ?? {})[0]),
      );
    };
    const before = await pragmas();
    expect(before).toEqual(["wal", 2, 1, 16 * 1024 * 1024]);
    const holder = await takeLock(join(folder.path, "test.db"), 1_500);
    await db.write([insert("a", 1)]);
    expect(db.busy).toBeGreaterThan(0);
    expect(await pragmas()).toEqual(before);
    await holder.released;
  });

  it("open() uses a known version of SQLite [DUR-7]", async () => {
    await using db = await Database.open(":memory:");
    expect(await db.first("select sqlite_version() as version")).toMatchObject({ version: "3.45.1" });
  });

  it("open() reports a file that is not a database and leaves it unchanged [DBF-6, DBF-8]", async () => {
    await using folder = await createTempDir();
    const path = join(folder.path, "garbage.db");
    await Deno.writeTextFile(path, "this is not a database ".repeat(1000));
    const before = await Deno.readTextFile(path);
    await expect(Database.open(`file:${path}`)).rejects.toThrow(/damaged or not a database/);
    expect(await Deno.readTextFile(path)).toBe(before);
    await expect(Database.open(`file:${folder.path}/no/such/dir/x.db`)).rejects.toThrow(/directory exists/);
  });

  it("migrate() refuses a newer schema and changes nothing [BAK-6]", async () => {
    await using folder = await createTempDir();
    await using db = await Database.open(`file:${join(folder.path, "test.db")}`);
    await migrate(db, 1);
    await db.write([{ sql: "insert into migration values (?, 'later', 1)", args: [SCHEMA_VERSION + 1] }]);
    await expect(migrate(db, 2)).rejects.toThrow(/newer program/);
    expect((await readSchema(db)).version).toBe(SCHEMA_VERSION + 1);
  });
});

async function prepare(db: Database): Promise<Database> {
  await drop(db);
  await db.write([
    { sql: "create table thing (id text primary key, n integer not null) strict", args: [] },
    {
      sql: "create table guard (held integer not null constraint guard_lost check (held = 1)) strict",
      args: [],
    },
  ]);
  return db;
}

/** Drops all tables, because a server still has those of the previous test. */
async function drop(db: Database): Promise<void> {
  await db.write([{ sql: "pragma defer_foreign_keys = on", args: [] }]).catch(() => {});
  for (let pass = 0; pass < 4; pass++) {
    const tables = await db.read<{ name: string }>(
      "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name not like 'libsql_%'",
    );
    for (const { name } of tables) {
      await db.write([{ sql: `drop table if exists ${name}`, args: [] }]).catch(() => {});
    }
  }
}

function insert(id: string, n: number) {
  return { sql: "insert into thing (id, n) values (?, ?)", args: [id, n] };
}

async function rows(db: Database): Promise<[string, number][]> {
  const found = await db.read<{ id: string; n: number }>("select id, n from thing order by id");
  return found.map((row) => [row.id, row.n]);
}

/** Takes the write lock in another process. Resolves once that process has it. */
async function takeLock(path: string, ms: number): Promise<{ released: Promise<void> }> {
  const script = `
    const { createClient } = await import("@libsql/client");
    const client = createClient({ url: "file:" + ${JSON.stringify(path)} });
    const transaction = await client.transaction("write");
    console.log("held");
    await new Promise((resolve) => setTimeout(resolve, ${ms}));
    await transaction.rollback();
    client.close();`;
  const child = new Deno.Command(Deno.execPath(), { args: ["eval", script], stdout: "piped", stderr: "null" })
    .spawn();
  const reader = child.stdout.getReader();
  await reader.read();
  return { released: child.status.then(() => reader.cancel()) };
}
