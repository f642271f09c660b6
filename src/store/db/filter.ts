import { TEXT_FILTER_MAX_ROWS } from "../../domain/call/field.ts";
import type { Page } from "../../domain/call/page.ts";
import type { Database, Value } from "./database.ts";

/** The conditions of a list, joined by `and`, with their arguments in order. */
export interface Where {
  conditions: string[];
  args: Value[];
}

type Condition<V> = (where: Where, value: V) => void;

/** Marks a filter that the list adds itself because it needs a query. */
export const BY_LIST = null;

/** The condition of each filter of a list, by the filter's name in the query. A missing filter is a type error. */
export type Filters<F> = {
  readonly [K in Exclude<keyof F, keyof Page>]-?: Condition<NonNullable<F[K]>> | typeof BY_LIST;
};

export function buildWhere<F extends object>(filter: F, filters: Filters<F>): Where {
  const where: Where = { conditions: [], args: [] };
  const conditions = Object.entries(filters) as [keyof F, Condition<unknown> | null][];
  for (const [name, condition] of conditions) {
    const value = filter[name];
    if (value !== undefined) condition?.(where, value);
  }
  return where;
}

/** Matches a column against one or several values. One value becomes `=`, so that an index also gives the order. */
export function matchAny(column: string): Condition<string | readonly string[]> {
  return ({ conditions, args }, value) => {
    const values = typeof value === "string" ? [value] : value;
    conditions.push(
      values.length === 1 ? `${column} = ?` : `${column} in (${values.map(() => "?").join(", ")})`,
    );
    args.push(...values);
  };
}

/** Matches columns of a table like matchAny(). */
export function matchColumns<K extends string>(
  table: string,
  names: readonly K[],
): Record<K, Condition<string | readonly string[]>> {
  const conditions = names.map((name) => [name, matchAny(`${table}.${name}`)]);
  return Object.fromEntries(conditions) as Record<K, Condition<string | readonly string[]>>;
}

/** Matches the row with this id, ending of an id, or name if the table has one (contract 8.11). */
export function matchReference(
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

/**
 * Matches rows that contain a text in one of the columns. With `table`, only its newest rows are searched, because no index finds
 * a part of a text.
 */
export function matchText(columns: readonly string[], table?: string): Condition<string> {
  return ({ conditions, args }, text) => {
    const pattern = buildPattern(text);
    conditions.push(`(${columns.map((column) => `${column} like ? escape '\\'`).join(" or ")})`);
    args.push(...columns.map(() => pattern));
    if (table === undefined) return;
    conditions.push(
      `${table}.id >= coalesce((select id from ${table} order by id desc limit 1 offset ${TEXT_FILTER_MAX_ROWS}), '')`,
    );
  };
}

/** Builds the pattern of `like ? escape '\\'` for texts that contain `text`. */
export function buildPattern(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, "\\$&")}%`;
}

/** Limits a list to the conversation that the caller is bound to. null: no limit (contract 2.8). */
export function limitToConversation(where: Where, column: string, boundTo: string | null): void {
  if (boundTo !== null) matchAny(column)(where, boundTo);
}

/** Inclusive bounds in Unix ms. */
export interface Bounds {
  from: number | undefined;
  to: number | undefined;
}

export function addBounds({ conditions, args }: Where, column: string, { from, to }: Bounds): void {
  if (from !== undefined) {
    conditions.push(`${column} >= ?`);
    args.push(from);
  }
  if (to !== undefined) {
    conditions.push(`${column} <= ?`);
    args.push(to);
  }
}

/** A time column with its own index, in a list that is ordered by id. */
interface TimeColumn {
  table: string;
  column: string;
  index: string;
}

// Sorting this many rows takes a negligible time.
const SORTED_MAX_ROWS = 5_000;
// Ids are created within moments of the times in their rows. One day covers a clock change.
export const CLOCK_SLACK_MS = 86_400_000;

/**
 * Adds the bounds so that narrow and wide ranges are both fast: few rows are found by the index of the time and sorted, many
 * are read in the order of their ids from the end of the range. Returns the `from` clause.
 */
export async function addTimeRange(
  db: Database,
  where: Where,
  { table, column, index }: TimeColumn,
  bounds: Bounds,
): Promise<string> {
  const { from, to } = bounds;
  if (from === undefined && to === undefined) return table;
  const range: Where = { conditions: [], args: [] };
  addBounds(range, column, bounds);
  const count = await db.first<{ rows: number }>(
    `select count(*) as rows from (select 1 from ${table} where ${range.conditions.join(" and ")} limit ?)`,
    [...range.args, SORTED_MAX_ROWS + 1],
  );
  const few = (count?.rows ?? 0) <= SORTED_MAX_ROWS;
  addBounds(where, few ? `${table}.${column}` : `+${table}.${column}`, bounds);
  if (few) return `${table} indexed by ${index}`;
  if (to !== undefined) {
    where.conditions.push(`${table}.id < ?`);
    where.args.push(buildFirstIdAt(to + CLOCK_SLACK_MS));
  }
  return table;
}

/** Returns the smallest id of a time. */
export function buildFirstIdAt(at: number): string {
  const hex = Math.min(at, 0xffff_ffff_ffff).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
