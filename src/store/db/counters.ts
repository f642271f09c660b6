import type { Database } from "./database.ts";

/** Numbers by name and key, maintained by triggers (store/migrations/schema_triggers.ts). */
type Counters = Record<string, Record<string, number>>;

export async function readCounters(db: Database): Promise<Counters> {
  const rows = await db.read<{ name: string; key: string; value: number }>(
    "select name, key, value from counter",
  );
  const counters: Counters = {};
  for (const { name, key, value } of rows) (counters[name] ??= {})[key] = value;
  return counters;
}

/** Returns the counts of `name` by these keys, and their sum as `total`. */
export function tally<const K extends readonly string[]>(
  counters: Counters,
  name: string,
  keys: K,
): { total: number } & { [P in K[number]]: number } {
  const counts = Object.fromEntries(keys.map((key) => [key, counters[name]?.[key] ?? 0]));
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return { total, ...counts } as { total: number } & { [P in K[number]]: number };
}
