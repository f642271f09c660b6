// On a server a database is one service's at a time: a row says whose, and how lately it was heard of (contract 4).
import type { Database, Row, Statement } from "./database.ts";

/** Who holds a database. `id` is the same after a restart on the same data directory. */
export interface Owner {
  id: string;
  host: string;
  pid: number;
}

/** An owner as others see it. `silent_ms` is how long ago it was heard of, by the clock of the database's server. */
export interface FoundOwner extends Row {
  host: string;
  pid: number;
  silent_ms: number;
}

// One clock for all: that of the server where the database is.
const NOW = "cast((julianday('now') - 2440587.5) * 86400000 as integer)";

/** Takes the database, unless somebody else holds it who was heard of less than `staleMs` ago. Answers whether it did. */
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

/** Who holds the database, or null. */
export function findOwner(db: Database): Promise<FoundOwner | null> {
  return db.first<FoundOwner>(
    `select json_extract(value, '$.host') as host, json_extract(value, '$.pid') as pid,
      ${NOW} - json_extract(value, '$.beat_at') as silent_ms
    from setting where name = 'owner'`,
  );
}

/** Whether there is a place for the row yet: not before the first migration. */
export async function mayHaveOwner(db: Database): Promise<boolean> {
  return await db.first("select 1 from sqlite_master where type = 'table' and name = 'setting'") !== null;
}

/** Stands before every batch of the owner: with another one in its place the batch writes nothing, and breaks(). */
export function fenceOf(id: string): Statement {
  return {
    sql: `insert into guard (held) select null
      where not exists (select 1 from setting where name = 'owner' and json_extract(value, '$.id') = ?)`,
    args: [id],
  };
}

/** Says that the owner is alive. */
export function beatOwner(): Statement {
  return {
    sql: `update setting set value = json_set(value, '$.beat_at', ${NOW}) where name = 'owner'`,
    args: [],
  };
}

/** The database is free at once. */
export function releaseDatabase(id: string): Statement {
  return {
    sql: "delete from setting where name = 'owner' and json_extract(value, '$.id') = ?",
    args: [id],
  };
}
