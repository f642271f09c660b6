// On a libSQL server one service at a time owns a database: a row says which, and when it last reported (decision 0060).
import type { Database, Row, Statement } from "./database.ts";

/** Who owns a database. `id` is the same after a restart on the same data directory. */
interface Owner {
  id: string;
  host: string;
  pid: number;
}

/** An owner as others see it. `silent_ms`: how long ago it last reported, by the clock of the database server. */
interface FoundOwner extends Row {
  host: string;
  pid: number;
  silent_ms: number;
}

// All use one clock: that of the database server.
const NOW = "cast((julianday('now') - 2440587.5) * 86400000 as integer)";

/** Takes the database, unless another owner reported less than `staleMs` ago. Returns whether it did. */
export async function takeDatabase(
  db: Database,
  { id, host, pid }: Owner,
  staleMs: number,
): Promise<boolean> {
  const { rows } = await db.write([{
    sql: `insert into setting (name, value)
      select 'owner', json_object('id', ?, 'host', ?, 'pid', ?, 'beat_at', ${NOW}) where true
      on conflict (name) do update set value = excluded.value
      where json_extract(setting.value, '$.id') = json_extract(excluded.value, '$.id')
        or json_extract(setting.value, '$.beat_at') < ${NOW} - ?
      returning name`,
    args: [id, host, pid, staleMs],
  }]);
  return (rows[0]?.length ?? 0) > 0;
}

/** The owner of the database, or null. */
export function findOwner(db: Database): Promise<FoundOwner | null> {
  return db.first<FoundOwner>(
    `select json_extract(value, '$.host') as host, json_extract(value, '$.pid') as pid,
      ${NOW} - json_extract(value, '$.beat_at') as silent_ms
    from setting where name = 'owner'`,
  );
}

/** Whether the table for the row exists: not before the first migration. */
export async function mayHaveOwner(db: Database): Promise<boolean> {
  return await db.first("select 1 from sqlite_master where type = 'table' and name = 'setting'") !== null;
}

/** Goes before every batch of the owner `id`: when the database has another owner, the batch fails and writes nothing. */
export function fenceOf(id: string): Statement {
  return {
    sql: `insert into guard (held) select null
      where not exists (select 1 from setting where name = 'owner' and json_extract(value, '$.id') = ?)`,
    args: [id],
  };
}

/** Reports that the owner is alive. */
export function beatOwner(): Statement {
  return {
    sql: `update setting set value = json_set(value, '$.beat_at', ${NOW}) where name = 'owner'`,
    args: [],
  };
}

/** Gives the database up, so that another server can take it at once. */
export function releaseDatabase(id: string): Statement {
  return {
    sql: "delete from setting where name = 'owner' and json_extract(value, '$.id') = ?",
    args: [id],
  };
}
