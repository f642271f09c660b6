// On a libSQL server, one service at a time owns a database. A row names the owner and its last heartbeat (decision 0021).
import type { Database, Statement } from "./database.ts";

/** The owner of a database, or a standby. */
export interface Owner {
  /** Survives a restart on the same data directory. */
  id: string;
  /** Unique per process: after a copy of a data directory, two processes have the same id (decision 0021). */
  fence: string;
  host: string;
  pid: number;
}

/** `silent_ms`: time since the last heartbeat, by the clock of the database server. */
interface FoundOwner {
  id: string;
  host: string;
  pid: number;
  silent_ms: number;
}

export type StandbyStatus = Omit<FoundOwner, "id">;

// All processes use the clock of the database server.
const NOW = "cast((julianday('now') - 2440587.5) * 86400000 as integer)";
// A standby that is silent for this long has ended.
const STANDBY_GONE_MS = 20_000;
const STANDBYS_LISTED_MAX = 20;

/** Takes the database unless another owner sent a heartbeat less than `staleMs` ago. Returns whether it did. */
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

export function findOwner(db: Database): Promise<FoundOwner | null> {
  return db.first<FoundOwner>(
    `select json_extract(value, '$.id') as id, json_extract(value, '$.host') as host, json_extract(value, '$.pid') as pid,
      ${NOW} - json_extract(value, '$.beat_at') as silent_ms
    from setting where name = 'owner'`,
  );
}

/** Whether the table for the owner exists, which the first migration creates. */
export function hasOwnerTable(db: Database): Promise<boolean> {
  return hasTable(db, "setting");
}

async function hasTable(db: Database, name: string): Promise<boolean> {
  return await db.first("select 1 from sqlite_master where type = 'table' and name = ?", [name]) !== null;
}

/** Builds the statement before every batch of this process. The batch fails when the database has another owner. */
export function buildFence(fence: string): Statement {
  return {
    sql: `insert into guard (held) select null
      where not exists (select 1 from setting where name = 'owner' and json_extract(value, '$.fence') = ?)`,
    args: [fence],
  };
}

/** Stores the owner's heartbeat and returns the standbys. */
export async function storeOwnerHeartbeat(db: Database): Promise<StandbyStatus[]> {
  const { rows } = await db.write([
    {
      sql: `update setting set value = json_set(value, '$.beat_at', ${NOW}) where name = 'owner'`,
      args: [],
    },
    { sql: `delete from standby where seen_at < ${NOW} - ?`, args: [STANDBY_GONE_MS] },
    {
      sql: `select host, pid, ${NOW} - seen_at as silent_ms from standby order by seen_at desc limit ?`,
      args: [STANDBYS_LISTED_MAX],
    },
  ], { first: true });
  return rows[2] as StandbyStatus[];
}

/** Gives up the database, so that another server can take it immediately. */
export function releaseDatabase(fence: string): Statement {
  return {
    sql: "delete from setting where name = 'owner' and json_extract(value, '$.fence') = ?",
    args: [fence],
  };
}

/** Stores a standby's heartbeat. Does nothing in a database of an older release, which has no table for it. */
export async function storeStandbyHeartbeat(db: Database, { id, host, pid }: Owner): Promise<void> {
  if (!await hasTable(db, "standby")) return;
  await db.write([{
    sql: `insert into standby (id, host, pid, seen_at) values (?, ?, ?, ${NOW})
      on conflict (id) do update set host = excluded.host, pid = excluded.pid, seen_at = excluded.seen_at`,
    args: [id, host, pid],
  }]);
}

export function deleteStandby(id: string): Statement {
  return { sql: "delete from standby where id = ?", args: [id] };
}
