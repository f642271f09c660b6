import type { Page } from "../../domain/call/page.ts";
import type { Database, Value } from "./database.ts";

/** The conditions of a list, which hold all at once, with their values in order. */
export interface Where {
  conditions: string[];
  args: Value[];
}

/** Adds what a filter asks for. */
type Condition<V> = (where: Where, value: V) => void;

/** A filter that its list itself adds, because it needs a query of its own. */
export const BY_LIST = null;

/**
 * For each filter of a list its condition, in the names of the query. A filter that has none is a type error, so a new
 * filter is one line here, one in its schema and one in its command.
 */
export type Filters<F> = {
  readonly [K in Exclude<keyof F, keyof Page>]-?: Condition<NonNullable<F[K]>> | typeof BY_LIST;
};

/** The conditions of every filter that is set. */
export function whereOf<F extends object>(filter: F, filters: Filters<F>): Where {
  const where: Where = { conditions: [], args: [] };
  const conditions = Object.entries(filters) as [keyof F, Condition<unknown> | null][];
  for (const [name, condition] of conditions) {
    const value = filter[name];
    if (value !== undefined) condition?.(where, value);
  }
  return where;
}

/** `column` has this value, or one of these. One value becomes `=`, so that an index also gives the order. */
export function oneOf(column: string): Condition<string | readonly string[]> {
  return ({ conditions, args }, value) => {
    const values = typeof value === "string" ? [value] : value;
    conditions.push(
      values.length === 1 ? `${column} = ?` : `${column} in (${values.map(() => "?").join(", ")})`,
    );
    args.push(...values);
  };
}

/** The row that a text names: its id, the ending of its id, or, where it has one, its name (contract 8.11). */
export function named(
  table: string,
  name?: { column: string; key: (text: string) => string },
): Condition<string> {
  return ({ conditions, args }, ref) => {
    const ending = ref.toLowerCase();
    const byName = name === undefined ? "" : ` union select id from ${table} where ${name.column} = ?`;
    conditions.push(`${table}.id in (
      select id from ${table} where id = ?
      union
      select id from ${table} where substr(id, -6) = ? and substr(id, ?) = ?${byName})`);
    args.push(
      ending,
      ending.slice(-6),
      -ending.length,
      ending,
      ...(name === undefined ? [] : [name.key(ref)]),
    );
  };
}

/** Nothing outside of the conversation that the caller is bound to; null for a caller that sees all (contract 2.8). */
export function inConversation(where: Where, column: string, boundTo: string | null): void {
  if (boundTo !== null) oneOf(column)(where, boundTo);
}

/** Inclusive bounds in Unix ms. */
export interface Bounds {
  from: number | undefined;
  to: number | undefined;
}

/** Adds inclusive bounds on a column of times. */
export function between({ conditions, args }: Where, column: string, { from, to }: Bounds): void {
  if (from !== undefined) {
    conditions.push(`${column} >= ?`);
    args.push(from);
  }
  if (to !== undefined) {
    conditions.push(`${column} <= ?`);
    args.push(to);
  }
}

/** A time that has an index of its own, while the list itself goes by id. */
interface TimeColumn {
  table: string;
  column: string;
  index: string;
}

// Sorting so many rows takes no time that matters.
const SORTED_MAX_ROWS = 5_000;
// An id is made within moments of the times in its row; one day more is for a clock that was set.
const CLOCK_SLACK_MS = 86_400_000;

/**
 * Adds the bounds so that both a narrow and a wide range stay fast: few rows are found by the index of the time and
 * sorted, many are read in the order of their ids, from the end of the range on. Returns the `from` clause.
 */
export async function within(
  db: Database,
  where: Where,
  { table, column, index }: TimeColumn,
  bounds: Bounds,
): Promise<string> {
  const { from, to } = bounds;
  if (from === undefined && to === undefined) return table;
  const range: Where = { conditions: [], args: [] };
  between(range, column, bounds);
  const count = await db.first<{ rows: number }>(
    `select count(*) as rows from (select 1 from ${table} where ${range.conditions.join(" and ")} limit ?)`,
    [...range.args, SORTED_MAX_ROWS + 1],
  );
  const few = (count?.rows ?? 0) <= SORTED_MAX_ROWS;
  between(where, few ? `${table}.${column}` : `+${table}.${column}`, bounds);
  if (few) return `${table} indexed by ${index}`;
  if (to !== undefined) {
    where.conditions.push(`${table}.id < ?`);
    where.args.push(idAt(to + CLOCK_SLACK_MS));
  }
  return table;
}

/** The smallest UUIDv7 of a time. */
function idAt(at: number): string {
  const hex = Math.min(at, 0xffff_ffff_ffff).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
