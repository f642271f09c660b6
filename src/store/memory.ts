import { type MemoryEntry, memorySchema } from "../domain/memory.ts";
import { COUNT_MAX, type Listing, type Page } from "../domain/page.ts";
import { type Database, guarded, type Statement } from "./database.ts";
import { parsed } from "./list.ts";
import { firstShown, shown } from "./shown.ts";
import { type Json, jsonList } from "../domain/json.ts";

const MEMORY_JSON = shown("memory", memorySchema);

/** All entries of a scope by key, as one object. */
export async function findMemoryMap(db: Database, scope: string): Promise<Record<string, string>> {
  const rows = await db.read<{ key: string; value: string }>(
    "select key, value from memory where scope = ? order by key",
    [scope],
  );
  return Object.fromEntries(rows.map((row) => [row.key, row.value]));
}

/** One page of a scope's entries by key (contract 1). */
export async function listMemory(db: Database, scope: string, page: Page): Promise<Listing<MemoryEntry>> {
  const { cursor = "", page_size: size } = page;
  const offset = page.cursor === undefined ? (page.page - 1) * size : 0;
  const rows = await db.read<{ key: string; json: Json<MemoryEntry> }>(
    `select key, ${MEMORY_JSON} as json
    from memory
    where scope = ? and key > ?
    order by key
    limit ? offset ?`,
    // One row more than is shown tells whether there is a next page.
    [scope, cursor, size + 1, offset],
  );
  const count = await db.first<{ total: number }>(
    "select count(*) as total from (select 1 from memory where scope = ? limit ?)",
    [scope, COUNT_MAX + 1],
  );
  const rowsShown = rows.slice(0, size);
  return {
    json: jsonList(rowsShown.map((row) => row.json)),
    total: count?.total ?? 0,
    next: rows.length > size ? rowsShown.at(-1)?.key ?? null : null,
  };
}

/** The entry, or null. */
export async function findMemory(db: Database, scope: string, key: string): Promise<MemoryEntry | null> {
  return parsed(await firstShown(db, MEMORY_JSON, "from memory where scope = ? and key = ?", [scope, key]));
}

/** Saves or replaces an entry, guarded by a new one finding fewer than `max` in its scope. */
export function saveMemory(entry: MemoryEntry, max: number): Statement[] {
  const { scope, key, value, updated_at } = entry;
  return guarded(
    `insert into memory (scope, key, value, updated_at)
    select ?, ?, ?, ?
    where (select count(*) from memory where scope = ? and key <> ?) < ?
    on conflict (scope, key) do update set value = excluded.value, updated_at = excluded.updated_at`,
    [scope, key, value, updated_at, scope, key, max],
  );
}

/** Deletes an entry, guarded by its existence. */
export function deleteMemory(scope: string, key: string): Statement[] {
  return guarded("delete from memory where scope = ? and key = ?", [scope, key]);
}
