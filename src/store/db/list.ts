import { joinJson, type Json, parseJson } from "../../domain/call/json.ts";
import { COUNT_MAX, type Listing, type Page } from "../../domain/call/page.ts";
import { isSmall, type Objects, readBounded, type Slice } from "./size_limited_read.ts";
import type { Database } from "./database.ts";
import { readJson } from "./json_projection.ts";
import type { Where } from "./filter.ts";

interface ListQuery<T> extends Objects<T> {
  /** The `from` clause if it is not the plain table. Its alias has to be `table`. */
  from?: string;
  where: Where;
  /** An expression to order by, ascending, then by id. Default: newest id first. */
  order?: string;
  counter?: { name: string; key?: string };
}

/**
 * Reads one page of a list by page number or cursor, and the count of the whole list (contract 1). The database joins the page to
 * one text. Beyond the size limit of a read, a page after a cursor ends earlier, and a numbered page has cut texts (contract 8.18).
 */
export function list<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T>> {
  const { page: number, page_size, cursor } = page;
  const { conditions, args } = query.where;
  const key = JSON.stringify([query.table, query.order, conditions, args, number, page_size, cursor]);
  return db.readCached(key, () => read(db, query, page), (listing) => listing.json.length);
}

async function read<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T>> {
  const { table, from = table } = query;
  const { conditions, args } = query.where;
  const fromEnd = await readFromEnd(db, query, page);
  if (fromEnd !== null) return fromEnd;
  const afterCursor = page.cursor === undefined ? [] : [buildAfterCursor(query)];
  const offset = page.cursor === undefined ? (page.page - 1) * page.page_size : 0;
  const text = await readPage(db, query, {
    sql: `from ${from} ${buildWhereClause([...conditions, ...afterCursor])} ${
      buildOrderClause(query)
    } limit ? offset ?`,
    args: [...args, ...(page.cursor === undefined ? [] : [page.cursor]), page.page_size, offset],
  }, page.cursor === undefined ? "cut" : "end");
  const { rows, last } = text;
  // There is a next page only if this page is full.
  const full = rows === page.page_size || text.ended;
  const total = page.cursor === undefined && offset === 0 && !full ? rows : await countUpTo(db, query);
  const hasNext = full && last !== null &&
    (page.cursor === undefined && total <= COUNT_MAX
      ? total > offset + rows
      : await hasMore(db, query, last));
  return { json: text.json, total, next: hasNext ? last : null };
}

function buildOrderClause({ table, order }: ListQuery<unknown>): string {
  return `order by ${order === undefined ? `${table}.id desc` : `${order}, ${table}.id`}`;
}

/** The condition that a row comes after the row of the cursor. */
function buildAfterCursor({ table, order }: ListQuery<unknown>): string {
  return order === undefined
    ? `${table}.id < ?`
    : `(${order}, ${table}.id) > (select ${order}, ${table}.id from ${table} where ${table}.id = ?)`;
}

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
    const last = query.order === undefined ? findSmallestId(rows) : rows.at(-1)?.id ?? null;
    return { json: joinJson(rows.map((row) => row.json)), last, rows: rows.length, ended };
  }
  const text = await db.first<{ json: Json<T[]>; last: string | null; rows: number }>(
    `select '[' || coalesce(group_concat(json, ','), '') || ']' as json, min(id) as last, count(*) as rows
    from (select ${query.table}.id as id, ${query.json} as json ${slice.sql})`,
    slice.args,
  );
  return {
    json: text?.json ?? joinJson<T>([]),
    last: text?.last ?? null,
    rows: text?.rows ?? 0,
    ended: false,
  };
}

function findSmallestId(rows: readonly { id: string }[]): string | null {
  return rows.reduce<string | null>((least, { id }) => least === null || id < least ? id : least, null);
}

/** Reads a page of an unfiltered list from the end when that is nearer, else returns null. SQLite steps over an offset row by row. */
async function readFromEnd<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T> | null> {
  const { table, counter } = query;
  const offset = (page.page - 1) * page.page_size;
  if (
    counter === undefined || query.where.conditions.length > 0 || page.cursor !== undefined ||
    offset <= COUNT_MAX
  ) {
    return null;
  }
  const counting = "select sum(value) as total from counter where name = ? and (? = '' or key = ?)";
  const { name, key = "" } = counter;
  const total = await db.readValue<number>(counting, [name, key, key]) ?? 0;
  const rows = Math.max(0, Math.min(page.page_size, total - offset));
  const after = total - offset - rows;
  if (after > offset) return null;
  const { json, last } = await readPage(db, query, {
    sql: `from (select id as page_id from ${table} order by id limit ? offset ?)
      cross join ${table} on ${table}.id = page_id
      order by ${table}.id desc`,
    args: [rows, Math.max(0, after)],
  }, "cut");
  return { json, total, next: after > 0 ? last : null };
}

function buildWhereClause(conditions: string[]): string {
  return conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
}

async function countUpTo(db: Database, query: ListQuery<unknown>): Promise<number> {
  return await db.readValue<number>(
    `select count(*) as total from (select 1 from ${query.from ?? query.table} ${
      buildWhereClause(query.where.conditions)
    } limit ?)`,
    [...query.where.args, COUNT_MAX + 1],
  ) ?? 0;
}

async function hasMore(db: Database, query: ListQuery<unknown>, last: string): Promise<boolean> {
  return await db.first(
    `select 1 as one from ${query.from ?? query.table} ${
      buildWhereClause([...query.where.conditions, buildAfterCursor(query)])
    } limit 1`,
    [...query.where.args, last],
  ) !== null;
}

/** Finds an object as JSON text. Null also outside the conversation that the caller is bound to. */
export function readBoundJson<T>(
  db: Database,
  { table, json }: Objects<T>,
  id: string,
  boundTo: string | null,
): Promise<Json<T> | null> {
  const rest = `from ${table} where id = ? and (? is null or session_key = ?)`;
  return readJson(db, json, rest, [id, boundTo, boundTo]);
}

/** Parses a JSON text of our own SQL. Null without one. */
export function parseNullableJson<T>(json: Json<T> | null | undefined): T | null {
  return json === null || json === undefined ? null : parseJson(json);
}
