import Libsql from "libsql";
import { yieldToLoop } from "../../base/yield_to_loop.ts";

// 512 KB and about 2 ms of this thread.
const PAGES_AT_ONCE = 128n;
// A commit waits until the disk has written all unsynced bytes.
const UNSYNCED_BYTES = 8 * 1024 * 1024;
// Header bytes that say whether the file has a WAL file: 1 no, 2 yes.
const FORMAT_VERSIONS = [18, 19];

/**
 * Copies a consistent snapshot of a database while other connections read and write. A second, read-only connection of this
 * thread holds the snapshot (facts, libSQL 2). Includes free pages. Throws on a full disk or an aborted `signal`, and
 * leaves the incomplete file.
 */
export async function copyPages(from: string, to: string, signal: AbortSignal): Promise<void> {
  using file = await Deno.open(to, { write: true, createNew: true, mode: 0o600 });
  const db = new Libsql(from);
  try {
    db.exec("pragma query_only = on");
    db.exec("begin");
    const { pages } = db.prepare(
      "select page_count as pages, (select count(*) from sqlite_schema) from pragma_page_count()",
    )
      .get([]) as { pages: number };
    const read = db.prepare(
      `with recursive numbers (number) as (select ?1 union all select number + 1 from numbers where number < ?2)
      select cast(group_concat(data, '') as blob) from numbers cross join sqlite_dbpage on pgno = number`,
    ).raw(true);
    const last = BigInt(pages);
    let unsynced = 0;
    for (let page = 1n; page <= last; page += PAGES_AT_ONCE) {
      // A loop of file.write() alone would block timers and requests.
      await yieldToLoop();
      signal.throwIfAborted();
      const until = page + PAGES_AT_ONCE - 1n;
      const [data] = read.get([page, until < last ? until : last]) as unknown as [ArrayBuffer];
      const bytes = new Uint8Array(data);
      if (page === 1n) { for (const at of FORMAT_VERSIONS) bytes[at] = 1; }
      for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
      unsynced += bytes.length;
      if (unsynced < UNSYNCED_BYTES) continue;
      await file.syncData();
      unsynced = 0;
    }
  } finally {
    if (db.inTransaction) db.exec("rollback");
    db.close();
  }
}
