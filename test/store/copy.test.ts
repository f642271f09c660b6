import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { copyPages } from "../../src/store/db/copy.ts";
import { Database, inspect } from "../../src/store/db/database.ts";
import { tempDir } from "../harness/service/process.ts";

const ROWS = 300;
const ROW_BYTES = 20_000;
const never = new AbortController().signal;

async function opened(path: string): Promise<Database> {
  return await Database.open(`file:${path}`);
}

/** A database of some 6 MB: a dozen steps of the copy. */
async function filled(path: string): Promise<Database> {
  const db = await opened(path);
  await db.write([{ sql: "create table note (number integer primary key, body text) strict", args: [] }]);
  await db.write([{
    sql: `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})
      insert into note select i, hex(randomblob(${ROW_BYTES / 2})) from n`,
    args: [],
  }]);
  return db;
}

describe("a copy of a database that is in use [BAK-1]", () => {
  it("is whole and as it was when it began, although others write all the while, and has no WAL file [BAK-1]", async () => {
    await using folder = await tempDir();
    const path = join(folder.path, "live.db");
    const copy = join(folder.path, "copy.db");
    const db = await filled(path);
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
    const there = await opened(copy);
    const [row] = await there.read<{ rows: number; bytes: number; least: number }>(
      "select count(*) as rows, sum(length(body)) as bytes, min(number) as least from note",
    );
    await there.close();
    expect(row).toEqual({
      rows: ROWS - (row?.least ?? 0) + 1,
      bytes: (row?.rows ?? 0) * ROW_BYTES,
      least: row?.least,
    });
    // Rows were deleted behind the moment that the copy shows.
    expect(row?.least).toBeLessThanOrEqual(written);
    await db.close();
  });

  it("lets everybody else go on: many turns pass while it is made [BAK-1, BAK-2]", async () => {
    await using folder = await tempDir();
    const db = await filled(join(folder.path, "live.db"));
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await db.copyTo(join(folder.path, "copy.db"), never);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
    await db.close();
  });

  it("ends when it is to, is never put over another file, and says when there is no room", async () => {
    await using folder = await tempDir();
    const path = join(folder.path, "live.db");
    const db = await filled(path);
    await expect(copyPages(path, join(folder.path, "ended.db"), AbortSignal.abort(new Error("stopping"))))
      .rejects
      .toThrow("stopping");
    const other = join(folder.path, "other");
    await Deno.writeTextFile(other, "kept");
    await expect(db.copyTo(other, never)).rejects.toThrow(/exists/i);
    expect(await Deno.readTextFile(other)).toBe("kept");
    await expect(db.copyTo("/dev/full/copy.db", never)).rejects.toThrow();
    // Afterwards it works as before.
    await db.write([{ sql: "delete from note", args: [] }]);
    await db.checkpoint();
    await db.close();
  });
});
