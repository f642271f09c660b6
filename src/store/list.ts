import { COUNT_MAX, type Listing, type Page } from "../domain/page.ts";
import type { Database, Value } from "./database.ts";

/** A list over one table, newest id first. Rows meet all conditions. */
interface ListQuery {
  table: string;
  /** The `from` clause when it is more than the table; its alias has to be `table`. */
  from?: string;
  /** SQL expression of the JSON that the API shows. */
  json: string;
  where: string[];
  args: Value[];
  /** The counters that together know how many rows there are in all (store/counter.ts). */
  counter?: { name: string; key?: string };
}

/**
 * One page of a list and the count of the whole list, by page number or after a cursor (contract 1). The database joins
 * the page to one text: fifty rows are read as one value.
 */
export function list(db: Database, query: ListQuery, page: Page): Promise<Listing> {
  const { page: number, page_size, cursor } = page;
  const key = JSON.stringify([query.table, query.where, query.args, number, page_size, cursor]);
  return db.unlessChanged(key, () => read(db, query, page), (listing) => listing.json.length);
}

async function read(db: Database, query: ListQuery, page: Page): Promise<Listing> {
  const { table, json, args, from = table } = query;
  const late = await readFromEnd(db, query, page);
  if (late !== null) return late;
  const behind = page.cursor === undefined ? [] : [`${table}.id < ?`];
  const offset = page.cursor === undefined ? (page.page - 1) * page.page_size : 0;
  const shown = await db.first<{ json: string | null; last: string | null; rows: number }>(
    `select group_concat(json, ',') as json, min(id) as last, count(*) as rows
    from (
      select ${table}.id as id, ${json} as json
      from ${from}
      ${where([...query.where, ...behind])}
      order by ${table}.id desc
      limit ? offset ?)`,
    [...args, ...(page.cursor === undefined ? [] : [page.cursor]), page.page_size, offset],
  );
  const rows = shown?.rows ?? 0;
  const last = shown?.last ?? null;
  // A page that is not full is the last one; only a full one has to look further.
  const full = rows === page.page_size;
  const total = page.cursor === undefined && offset === 0 && !full ? rows : await countUpTo(db, query);
  const more = full && last !== null &&
    (page.cursor === undefined && total <= COUNT_MAX
      ? total > offset + rows
      : await hasMore(db, query, last));
  return { json: `[${shown?.json ?? ""}]`, total, next: more ? last : null };
}

/**
 * A page of a list without filters that is nearer to the end than to the start, read from the end; else null. SQLite steps
 * over an offset row by row, so at most half of the rows are stepped over.
 */
async function readFromEnd(db: Database, query: ListQuery, page: Page): Promise<Listing | null> {
  const { table, json, counter } = query;
  const offset = (page.page - 1) * page.page_size;
  if (counter === undefined || query.where.length > 0 || page.cursor !== undefined || offset <= COUNT_MAX) {
    return null;
  }
  const counted = await db.first<{ total: number }>(
    "select sum(value) as total from counter where name = ? and (? = '' or key = ?)",
    [counter.name, counter.key ?? "", counter.key ?? ""],
  );
  const total = counted?.total ?? 0;
  const rows = Math.max(0, Math.min(page.page_size, total - offset));
  const behind = total - offset - rows;
  if (behind > offset) return null;
  const shown = await db.first<{ json: string | null; last: string | null }>(
    `select group_concat(json, ',') as json, min(id) as last
    from (
      select id, json
      from (select ${table}.id as id, ${json} as json from ${table} order by ${table}.id limit ? offset ?)
      order by id desc)`,
    [rows, Math.max(0, behind)],
  );
  return { json: `[${shown?.json ?? ""}]`, total, next: behind > 0 ? shown?.last ?? null : null };
}

function where(conditions: string[]): string {
  return conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
}

async function countUpTo(db: Database, query: ListQuery): Promise<number> {
  const row = await db.first<{ total: number }>(
    `select count(*) as total from (select 1 from ${query.from ?? query.table} ${
      where(query.where)
    } limit ?)`,
    [...query.args, COUNT_MAX + 1],
  );
  return row?.total ?? 0;
}

async function hasMore(db: Database, query: ListQuery, last: string): Promise<boolean> {
  const row = await db.first(
    `select 1 as one from ${query.from ?? query.table} ${
      where([...query.where, `${query.table}.id < ?`])
    } limit 1`,
    [...query.args, last],
  );
  return row !== null;
}

/** Adds `column in (values)`; one value as `=`, so that an index also gives the order. */
export function oneOf(where: string[], args: Value[], column: string, values: readonly string[]): void {
  if (values.length === 1) where.push(`${column} = ?`);
  else where.push(`${column} in (${values.map(() => "?").join(", ")})`);
  args.push(...values);
}

/** Adds inclusive bounds on a column of times. */
export function between(
  where: string[],
  args: Value[],
  column: string,
  from: number | undefined,
  to: number | undefined,
): void {
  if (from !== undefined) {
    where.push(`${column} >= ?`);
    args.push(from);
  }
  if (to !== undefined) {
    where.push(`${column} <= ?`);
    args.push(to);
  }
}

/** A list filtered by a time that has an index of its own, while the list itself goes by id. */
interface TimeRange {
  table: string;
  column: string;
  index: string;
  from: number | undefined;
  to: number | undefined;
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
  where: string[],
  args: Value[],
  range: TimeRange,
): Promise<string> {
  const { table, column, index, from, to } = range;
  if (from === undefined && to === undefined) return table;
  const bounds: string[] = [];
  const limits: Value[] = [];
  between(bounds, limits, column, from, to);
  const count = await db.first<{ rows: number }>(
    `select count(*) as rows from (select 1 from ${table} where ${bounds.join(" and ")} limit ?)`,
    [...limits, SORTED_MAX_ROWS + 1],
  );
  const few = (count?.rows ?? 0) <= SORTED_MAX_ROWS;
  between(where, args, few ? `${table}.${column}` : `+${table}.${column}`, from, to);
  if (few) return `${table} indexed by ${index}`;
  if (to !== undefined) {
    where.push(`${table}.id < ?`);
    args.push(idAt(to + CLOCK_SLACK_MS));
  }
  return table;
}

/** The smallest UUIDv7 of a time. */
function idAt(at: number): string {
  const hex = Math.min(at, 0xffff_ffff_ffff).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** The object of a JSON text that our own SQL made. */
export function parsed<T>(json: string | null | undefined): T | null {
  return json === null || json === undefined ? null : JSON.parse(json) as T;
}
