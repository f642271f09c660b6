import type { Database, Statement } from "./database.ts";

/** All entries of a scope by key, as one object. */
export async function findMemoryMap(db: Database, scope: string): Promise<Record<string, string>> {
  const rows = await db.read<{ key: string; value: string }>(
    "select key, value from memory where scope = ? order by key",
    [scope],
  );
  return Object.fromEntries(rows.map((row) => [row.key, row.value]));
}

/** Saves or replaces an entry. */
export function saveMemory(scope: string, key: string, value: string, now: number): Statement {
  return {
    sql: `insert into memory (scope, key, value, updated_at) values (?, ?, ?, ?)
      on conflict (scope, key) do update set value = excluded.value, updated_at = excluded.updated_at`,
    args: [scope, key, value, now],
  };
}
