// On a libSQL server one service at a time owns a database: a row says which, and when it last reported (decision 0021).
import type { Database, Row, Statement } from "./database.ts";

/** Who owns a database, or waits for it. */
export interface Owner {
  /** The same after a restart on the same data directory. */
  id: string;
  /** Of this process alone: after a copy of a data directory two processes have the same id (decision 0021). */
  fence: string;
  host: string;
  pid: number;
}

/** An owner as others see it. `silent_ms`: how long ago it last reported, by the clock of the database server. */
interface FoundOwner extends Row {
  id: string;
  host: string;
  pid: number;
  silent_ms: number;
}

/** A standby as the owner sees it. */
export interface FoundStandby extends Row {
  host: string;
  pid: number;
  silent_ms: number;
}

// All use one clock: that of the database server.
const NOW = "cast((julianday('now') - 2440587.5) * 86400000 as integer)";
// One that is silent for so long is not waiting any more.
const STANDBY_GONE_MS = 20_000;
const STANDBYS_SHOWN_MAX = 20;

/** Takes the database, unless another owner reported less than `staleMs` ago. Returns whether it did. */
export async function takeDatabase(
  db: Database,
  { id, fence, host, pid }: Owner,
  staleMs: number,
): Promise<boolean> {
  const { rows } = await db.write([{
    sql: `insert into setting (name, value)
      select 'owner', json_object('id', ?, 'fence', ?, 'host', ?, 'pid', ?, 'beat_at', ${NOW}) where true
      on conflict (name) do update set value = excluded.value
      where json_extract(setting.value, '$.id') = json_extract(excluded.value, '$.id')
        or json_extract(setting.value, '$.beat_at') < ${NOW} - ?
      returning name`,
    args: [id, fence, host, pid, staleMs],
  }]);
  return (rows[0]?.length ?? 0) > 0;
}

/** The owner of the database, or null. */
export function findOwner(db: Database): Promise<FoundOwner | null> {
  return db.first<FoundOwner>(
    `select json_extract(value, '$.id') as id, json_extract(value, '$.host') as host, json_extract(value, '$.pid') as pid,
      ${NOW} - json_extract(value, '$.beat_at') as silent_ms
    from setting where name = 'owner'`,
  );
}

/** Whether the table for the row exists: not before the first migration. */
export async function mayHaveOwner(db: Database): Promise<boolean> {
  return await db.first("select 1 from sqlite_master where type = 'table' and name = 'setting'") !== null;
}

/** Goes before every batch of the process with this fence: when the database has another owner, the batch fails and writes nothing. */
export function fenceOf(fence: string): Statement {
  return {
    sql: `insert into guard (held) select null
      where not exists (select 1 from setting where name = 'owner' and json_extract(value, '$.fence') = ?)`,
    args: [fence],
  };
}

/** Reports that the owner is alive, and who waits to take over from it. */
export async function beatOwner(db: Database): Promise<FoundStandby[]> {
  const { rows } = await db.write([
    {
      sql: `update setting set value = json_set(value, '$.beat_at', ${NOW}) where name = 'owner'`,
      args: [],
    },
    { sql: `delete from standby where seen_at < ${NOW} - ?`, args: [STANDBY_GONE_MS] },
    {
      sql: `select host, pid, ${NOW} - seen_at as silent_ms from standby order by seen_at desc limit ?`,
      args: [STANDBYS_SHOWN_MAX],
    },
  ], { first: true });
  return rows[2] as FoundStandby[];
}

/** Gives the database up, so that another server can take it at once. */
export function releaseDatabase(fence: string): Statement {
  return {
    sql: "delete from setting where name = 'owner' and json_extract(value, '$.fence') = ?",
    args: [fence],
  };
}

/** Reports that this one waits. A database of an older release has no table for it yet, and then nothing happens. */
export async function beatStandby(db: Database, { id, host, pid }: Owner): Promise<void> {
  if (await db.first("select 1 from sqlite_master where type = 'table' and name = 'standby'") === null) {
    return;
  }
  await db.write([{
    sql: `insert into standby (id, host, pid, seen_at) values (?, ?, ?, ${NOW})
      on conflict (id) do update set host = excluded.host, pid = excluded.pid, seen_at = excluded.seen_at`,
    args: [id, host, pid],
  }]);
}

/** It does not wait any more. */
export function leaveStandby(id: string): Statement {
  return { sql: "delete from standby where id = ?", args: [id] };
}
