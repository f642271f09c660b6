import { expect, it } from "vitest";
import { Database } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import {
  buildFence,
  deleteStandby,
  findOwner,
  hasOwnerTable,
  releaseDatabase,
  storeOwnerHeartbeat,
  storeStandbyHeartbeat,
  takeDatabase,
} from "../../src/store/db/database_owner.ts";

const STALE_MS = 60_000;
const one = { id: "one", fence: "of one", host: "a.example", pid: 1 };
const two = { id: "two", fence: "of two", host: "b.example", pid: 2 };

it("takeDatabase() allows one owner, its return, and another one after a silence or a release (decision 0021)", async () => {
  await using db = await Database.open(":memory:");
  expect(await hasOwnerTable(db)).toBe(false);
  await migrate(db, 1);
  expect([await hasOwnerTable(db), await findOwner(db)]).toEqual([true, null]);
  await db.write([{
    sql: "insert into setting (name, value) values ('other', '{\"id\": \"two\"}')",
    args: [],
  }]);

  expect(await takeDatabase(db, one, STALE_MS)).toBe(true);
  expect(await takeDatabase(db, two, STALE_MS)).toBe(false);
  expect(await findOwner(db)).toMatchObject({ host: "a.example", pid: 1 });
  expect(await takeDatabase(db, { ...one, pid: 3 }, STALE_MS)).toBe(true);
  expect(await findOwner(db)).toMatchObject({ host: "a.example", pid: 3 });

  const silent = (ms: number) =>
    db.write([{
      sql:
        "update setting set value = json_set(value, '$.beat_at', json_extract(value, '$.beat_at') - ?) where name = 'owner'",
      args: [ms],
    }]);
  await silent(STALE_MS / 2);
  expect((await findOwner(db))?.silent_ms).toBeGreaterThanOrEqual(STALE_MS / 2);
  expect(await takeDatabase(db, two, STALE_MS)).toBe(false);
  await silent(STALE_MS);
  expect(await storeOwnerHeartbeat(db)).toEqual([]);
  expect((await findOwner(db))?.silent_ms).toBeLessThan(STALE_MS / 2);
  expect(await takeDatabase(db, two, STALE_MS)).toBe(false);
  await silent(STALE_MS + 1_000);
  expect(await takeDatabase(db, two, STALE_MS)).toBe(true);

  await db.write([releaseDatabase("of one")]);
  expect(await findOwner(db)).toMatchObject({ host: "b.example" });
  // A process of the same data directory that has ended cannot release the database of its successor.
  await db.write([releaseDatabase("of another process of two")]);
  expect(await findOwner(db)).toMatchObject({ host: "b.example" });
  await db.write([releaseDatabase("of two")]);
  expect(await findOwner(db)).toBeNull();
  expect(await db.read("select name from setting where name = 'other'")).toHaveLength(1);
});

it("fenceOff() prevents the writes of a replaced owner, and reports that once (decision 0021)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 1);
  await takeDatabase(db, one, STALE_MS);
  const said: string[] = [];
  db.onBroken = (reason) => said.push(reason);
  db.fenceOff(buildFence("of one"));
  const note = (name: string) =>
    db.write([{ sql: "insert into setting (name, value) values (?, '1')", args: [name] }]);
  const written = await db.write([
    { sql: "insert into setting (name, value) values ('first', '1') returning name", args: [] },
  ]);
  expect(written).toEqual({ won: true, rows: [[{ name: "first" }]] });
  await db.write([{
    sql: "update setting set value = json_set(value, '$.fence', 'of two') where name = 'owner'",
    args: [],
  }]);
  for (const name of ["second", "third"]) {
    await expect(note(name)).rejects.toMatchObject({ code: "unavailable" });
  }
  expect(said).toEqual([expect.stringContaining("taken it over")]);
  expect(db.broken).toContain("taken it over");
  expect(await db.read("select name from setting where name in ('second', 'third')")).toEqual([]);
});

it("fenceOff() separates two processes with the same id, as after a copy of a data directory (decision 0021)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 1);
  await takeDatabase(db, one, STALE_MS);
  db.fenceOff(buildFence(one.fence));
  const write = () => db.write([{ sql: "insert into setting (name, value) values ('a', '1')", args: [] }]);
  expect((await write()).won).toBe(true);
  // The copy takes the database immediately. These writes stand for those of the other process, which has its own fence.
  await db.write([{ sql: "delete from setting where name = 'a'", args: [] }]);
  await db.write([{
    sql: "update setting set value = json_set(value, '$.fence', 'of the copy') where name = 'owner'",
    args: [],
  }]);
  await expect(write()).rejects.toMatchObject({ code: "unavailable" });
  expect(await db.first("select 1 from setting where name = 'a'")).toBeNull();
});

it("storeOwnerHeartbeat() returns the standbys until they have ended (contract 18)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 1);
  await takeDatabase(db, one, STALE_MS);
  await storeStandbyHeartbeat(db, two);
  await storeStandbyHeartbeat(db, { ...two, pid: 3 });
  expect(await storeOwnerHeartbeat(db)).toEqual([{
    host: "b.example",
    pid: 3,
    silent_ms: expect.any(Number),
  }]);
  await db.write([{ sql: "update standby set seen_at = seen_at - 60000", args: [] }]);
  expect(await storeOwnerHeartbeat(db)).toEqual([]);
  await storeStandbyHeartbeat(db, two);
  await db.write([deleteStandby("two")]);
  expect(await storeOwnerHeartbeat(db)).toEqual([]);
});
