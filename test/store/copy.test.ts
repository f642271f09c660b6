import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { copyPages } from "../../src/store/db/copy.ts";
import { Database, inspect } from "../../src/store/db/database.ts";
import { createTempDir } from "../harness/service/process.ts";

const ROWS = 300;
const ROW_BYTES = 20_000;
const never = new AbortController().signal;

/** Creates a database of some 6 MB, a dozen steps of the copy. */
async function createFilled(path: string): Promise<Database> {
  const db = await Database.open(`file:${path}`);
  await db.write([{ sql: "create table note (number integer primary key, body text) strict", args: [] }]);
  await db.write([{
    sql: `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})
      insert into note select i, hex(randomblob(${ROW_BYTES / 2})) from n`,
    args: [],
  }]);
  return db;
}

describe("copyTo() of a database that is in use [BAK-1]", () => {
  it("copies the snapshot of its start during concurrent writes, without a WAL file [BAK-1]", async () => {
    await using folder = await createTempDir();
    const path = join(folder.path, "live.db");
    const copy = join(folder.path, "copy.db");
    const db = await createFilled(path);
    let written = 0;
    let copying = true;
    const writing = (async () => {
      while (copying) {
        await db.write([
          { sql: "delete from note where number = ?", args: [++written] },
          { sql: `update note set body = hex(zeroblob(${ROW_BYTES / 2})) where number = ?`, args: [ROWS] },
        ]);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    await db.copyTo(copy, never);
    copying = false;
    await writing;
    expect(written).toBeGreaterThan(2);
    expect(await inspect(copy)).toEqual([]);
    const copied = await Database.open(`file:${copy}`);
    const [row] = await copied.read<{ rows: number; bytes: number; least: number }>(
      "select count(*) as rows, sum(length(body)) as bytes, min(number) as least from note",
    );
    await copied.close();
    expect(row).toEqual({
      rows: ROWS - (row?.least ?? 0) + 1,
      bytes: (row?.rows ?? 0) * ROW_BYTES,
      least: row?.least,
    });
    // Writes after the start of the copy deleted these rows.
    expect(row?.least).toBeLessThanOrEqual(written);
    await db.close();
  });

  it("lets many turns of the event loop run during the copy [BAK-1, BAK-2]", async () => {
    await using folder = await createTempDir();
    const db = await createFilled(join(folder.path, "live.db"));
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await db.copyTo(join(folder.path, "copy.db"), never);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
    await db.close();
  });

  it("stops on abort, never overwrites a file, and fails without disk space", async () => {
    await using folder = await createTempDir();
    const path = join(folder.path, "live.db");
    const db = await createFilled(path);
    await expect(copyPages(path, join(folder.path, "ended.db"), AbortSignal.abort(new Error("stopping"))))
      .rejects
      .toThrow("stopping");
    const other = join(folder.path, "other");
    await Deno.writeTextFile(other, "kept");
    await expect(db.copyTo(other, never)).rejects.toThrow(/exists/i);
    expect(await Deno.readTextFile(other)).toBe("kept");
    await expect(db.copyTo("/dev/full/copy.db", never)).rejects.toThrow();
    // The database still works.
    await db.write([{ sql: "delete from note", args: [] }]);
    await db.checkpoint();
    await db.close();
  });
});
