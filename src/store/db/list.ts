import { type Json, jsonList, valueOf } from "../../domain/call/json.ts";
import { COUNT_MAX, type Listing, type Page } from "../../domain/call/page.ts";
import { isSmall, type Objects, readBounded, type Slice } from "./size_limited_read.ts";
import type { Database } from "./database.ts";
import type { Where } from "./filter.ts";

/** A list over one table, newest id first. Rows meet all conditions. */
interface ListQuery<T> extends Objects<T> {
  /** The `from` clause when it is more than the table; its alias has to be `table`. */
  from?: string;
  where: Where;
  /** An expression to order by, smallest first, and then by id; without it the newest id comes first. */
  order?: string;
  /** The counters that together know how many rows there are in all (store/counter.ts). */
  counter?: { name: string; key?: string };
}

/**
 * One page of a list and the count of the whole list, by page number or after a cursor (contract 1). The database joins
 * the page to one text: fifty rows are read as one value. With more text than a read may make, a page behind a cursor ends earlier
 * and the texts of a numbered one are cut (contract 8.18).
 */
export function list<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T>> {
  const { page: number, page_size, cursor } = page;
  const { conditions, args } = query.where;
  const key = JSON.stringify([query.table, query.order, conditions, args, number, page_size, cursor]);
  return db.unlessChanged(key, () => read(db, query, page), (listing) => listing.json.length);
}

async function read<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T>> {
  const { table, from = table } = query;
  const { conditions, args } = query.where;
  const late = await readFromEnd(db, query, page);
  if (late !== null) return late;
  const behind = page.cursor === undefined ? [] : [isBehind(query)];
  const offset = page.cursor === undefined ? (page.page - 1) * page.page_size : 0;
  const shown = await readPage(db, query, {
    sql: `from ${from} ${where([...conditions, ...behind])} order by ${orderOf(query)} limit ? offset ?`,
    args: [...args, ...(page.cursor === undefined ? [] : [page.cursor]), page.page_size, offset],
  }, page.cursor === undefined ? "cut" : "end");
  const { rows, last } = shown;
  // A page that is not full is the last one; only a full one has to look further.
  const full = rows === page.page_size || shown.ended;
  const total = page.cursor === undefined && offset === 0 && !full ? rows : await countUpTo(db, query);
  const more = full && last !== null &&
    (page.cursor === undefined && total <= COUNT_MAX
      ? total > offset + rows
      : await hasMore(db, query, last));
  return { json: shown.json, total, next: more ? last : null };
}

function orderOf({ table, order }: ListQuery<unknown>): string {
  return order === undefined ? `${table}.id desc` : `${order}, ${table}.id`;
}

/** Whether a row comes behind the one with an id. */
function isBehind({ table, order }: ListQuery<unknown>): string {
  return order === undefined
    ? `${table}.id < ?`
    : `(${order}, ${table}.id) > (select ${order}, ${table}.id from ${table} where ${table}.id = ?)`;
}

/** A page as a JSON array, and the id of its last row. */
interface PageText<T> {
  json: Json<T[]>;
  last: string | null;
  rows: number;
  ended: boolean;
}

async function readPage<T>(
  db: Database,
  query: ListQuery<T>,
  slice: Slice,
  over: "end" | "cut",
): Promise<PageText<T>> {
  if (query.order !== undefined || !await isSmall(db, query, slice)) {
    const { rows, ended } = await readBounded(db, query, slice, { over });
    const last = query.order === undefined ? smallest(rows) : rows.at(-1)?.id ?? null;
    return { json: jsonList(rows.map((row) => row.json)), last, rows: rows.length, ended };
  }
  const shown = await db.first<{ json: Json<T[]>; last: string | null; rows: number }>(
    `select '[' || coalesce(group_concat(json, ','), '') || ']' as json, min(id) as last, count(*) as rows
    from (select ${query.table}.id as id, ${query.json} as json ${slice.sql})`,
    slice.args,
  );
  return {
    json: shown?.json ?? jsonList<T>([]),
    last: shown?.last ?? null,
    rows: shown?.rows ?? 0,
    ended: false,
  };
}

function smallest(rows: readonly { id: string }[]): string | null {
  return rows.reduce<string | null>((least, { id }) => least === null || id < least ? id : least, null);
}

/**
 * A page of a list without filters that is nearer to the end than to the start, read from the end; else null. SQLite steps
 * over an offset row by row, so at most half of the rows are stepped over.
 */
async function readFromEnd<T>(
  db: Database,
  query: ListQuery<T>,
  page: Page,
): Promise<Listing<T> | null> {
  const { table, counter } = query;
  const offset = (page.page - 1) * page.page_size;
  if (
    counter === undefined || query.where.conditions.length > 0 || page.cursor !== undefined ||
    offset <= COUNT_MAX
  ) {
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
  const { json, last } = await readPage(db, query, {
    sql: `from (select id as place from ${table} order by id limit ? offset ?)
      cross join ${table} on ${table}.id = place
      order by ${table}.id desc`,
    args: [rows, Math.max(0, behind)],
  }, "cut");
  return { json, total, next: behind > 0 ? last : null };
}

function where(conditions: string[]): string {
  return conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
}

async function countUpTo(db: Database, query: ListQuery<unknown>): Promise<number> {
  const row = await db.first<{ total: number }>(
    `select count(*) as total from (select 1 from ${query.from ?? query.table} ${
      where(query.where.conditions)
    } limit ?)`,
    [...query.where.args, COUNT_MAX + 1],
  );
  return row?.total ?? 0;
}

async function hasMore(db: Database, query: ListQuery<unknown>, last: string): Promise<boolean> {
  const row = await db.first(
    `select 1 as one from ${query.from ?? query.table} ${
      where([...query.where.conditions, isBehind(query)])
    } limit 1`,
    [...query.where.args, last],
  );
  return row !== null;
}

/** What a JSON text that our own SQL made holds; null without one. */
export function parsed<T>(json: Json<T> | null | undefined): T | null {
  return json === null || json === undefined ? null : valueOf(json);
}
