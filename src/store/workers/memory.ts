import { type MemoryEntry, type MemoryFilter, memorySchema } from "../../domain/workers/memory.ts";
import { COUNT_MAX, type Listing } from "../../domain/call/page.ts";
import { type MeasuredObject, type Objects, readMeasured } from "../db/size_limited_read.ts";
import { type Database, guard, type Statement } from "../db/database.ts";
import { matchText, type Where } from "../db/filter.ts";
import { parseNullableJson } from "../db/list.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";
import { joinJson } from "../../domain/call/json.ts";

const MEMORY_JSON = buildJsonSql("memory", memorySchema);

interface MemoryMap {
  entries: Record<string, string>;
  /** Number of older entries that are left out. */
  left: number;
}

/** Returns the entries of a scope that fit into `maxBytes`, newest first. */
export async function findMemoryMap(db: Database, scope: string, maxBytes: number): Promise<MemoryMap> {
  const rows = await db.read<{ key: string; value: string | null }>(
    `select memory.key, iif(fits, value, null) as value
    from memory
    join (
      select key, sum(octet_length(key) + octet_length(value)) over (order by updated_at desc, key) <= ? as fits
      from memory
      where scope = ?) as measured on measured.key = memory.key
    where scope = ?
    order by updated_at desc, memory.key`,
    [maxBytes, scope, scope],
  );
  const kept = rows.flatMap(({ key, value }) => value === null ? [] : [[key, value] as const]);
  return { entries: Object.fromEntries(kept), left: rows.length - kept.length };
}

/** Lists a page of a scope's entries by key, with the size limit of list() (contract 1, contract 8.18). */
export async function listMemory(db: Database, filter: MemoryFilter): Promise<Listing<MemoryEntry>> {
  const { scope, text, cursor = "", page_size: size } = filter;
  const offset = filter.cursor === undefined ? (filter.page - 1) * size : 0;
  const where: Where = { conditions: ["scope = ?"], args: [scope] };
  if (text !== undefined) matchText(["key", "value"])(where, text);
  const conditions = where.conditions.join(" and ");
  const measured = await db.read<MeasuredObject>(
    `select key as id, octet_length(value) as bytes
    from memory
    where ${conditions} and key > ?
    order by key
    limit ? offset ?`,
    // An extra row shows whether there is a next page.
    [...where.args, cursor, size + 1, offset],
  );
  const counting = `select count(*) as total from (select 1 from memory where ${conditions} limit ?)`;
  const total = await db.readValue<number>(counting, [...where.args, COUNT_MAX + 1]) ?? 0;
  const { rows, ended } = await readMeasured(db, buildEntrySource(scope), measured.slice(0, size), {
    over: filter.cursor === undefined ? "cut" : "end",
  });
  return {
    json: joinJson(rows.map((row) => row.json)),
    total,
    next: ended || measured.length > size ? rows.at(-1)?.id ?? null : null,
  };
}

function buildEntrySource(scope: string): Objects<MemoryEntry> {
  const find = (key: string) => ({ sql: "from memory where scope = ? and key = ?", args: [scope, key] });
  return { table: "memory", json: MEMORY_JSON, texts: ["value"], find };
}

export async function findMemory(db: Database, scope: string, key: string): Promise<MemoryEntry | null> {
  const rest = "from memory where scope = ? and key = ?";
  return parseNullableJson(await readJson(db, MEMORY_JSON, rest, [scope, key]));
}

/** Stores an entry, guarded by fewer than `max` others in its scope. */
export function storeMemory(entry: MemoryEntry, max: number): Statement[] {
  const { scope, key, value, updated_at } = entry;
  return guard(
    `insert into memory (scope, key, value, updated_at)
    select ?, ?, ?, ?
    where (select count(*) from memory where scope = ? and key <> ?) < ?
    on conflict (scope, key) do update set value = excluded.value, updated_at = excluded.updated_at`,
    [scope, key, value, updated_at, scope, key, max],
  );
}

export function deleteMemory(scope: string, key: string): Statement[] {
  return guard("delete from memory where scope = ? and key = ?", [scope, key]);
}
