import { type Json, valueOf } from "../domain/json.ts";
import { COUNT_MAX, type Listing, type Page } from "../domain/page.ts";
import type { Database } from "./database.ts";
import type { Where } from "./filter.ts";
import type { JsonSql } from "./shown.ts";

/** A list over one table, newest id first. Rows meet all conditions. */
interface ListQuery<T> {
  table: string;
  /** The `from` clause when it is more than the table; its alias has to be `table`. */
  from?: string;
  /** SQL expression of the JSON that the API shows. */
  json: JsonSql<T>;
  where: Where;
  /** The counters that together know how many rows there are in all (store/counter.ts). */
  counter?: { name: string; key?: string };
}

/**
 * One page of a list and the count of the whole list, by page number or after a cursor (contract 1). The database joins
 * the page to one text: fifty rows are read as one value.
 */
export function list<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T>> {
  const { page: number, page_size, cursor } = page;
  const { conditions, args } = query.where;
  const key = JSON.stringify([query.table, conditions, args, number, page_size, cursor]);
  return db.unlessChanged(key, () => read(db, query, page), (listing) => listing.json.length);
}

async function read<T>(db: Database, query: ListQuery<T>, page: Page): Promise<Listing<T>> {
  const { table, json, from = table } = query;
  const { conditions, args } = query.where;
  const late = await readFromEnd(db, query, page);
  if (late !== null) return late;
  const behind = page.cursor === undefined ? [] : [`${table}.id < ?`];
  const offset = page.cursor === undefined ? (page.page - 1) * page.page_size : 0;
  const shown = await db.first<{ json: string | null; last: string | null; rows: number }>(
    `select group_concat(json, ',') as json, min(id) as last, count(*) as rows
    from (
      select ${table}.id as id, ${json} as json
      from ${from}
      ${where([...conditions, ...behind])}
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
  return { json: `[${shown?.json ?? ""}]` as Json<T[]>, total, next: more ? last : null };
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
  const { table, json, counter } = query;
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
  const shown = await db.first<{ json: string | null; last: string | null }>(
    `select group_concat(json, ',') as json, min(id) as last
    from (
      select id, json
      from (select ${table}.id as id, ${json} as json from ${table} order by ${table}.id limit ? offset ?)
      order by id desc)`,
    [rows, Math.max(0, behind)],
  );
  return {
    json: `[${shown?.json ?? ""}]` as Json<T[]>,
    total,
    next: behind > 0 ? shown?.last ?? null : null,
  };
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
      where([...query.where.conditions, `${query.table}.id < ?`])
    } limit 1`,
    [...query.where.args, last],
  );
  return row !== null;
}

/** What a JSON text that our own SQL made holds; null without one. */
export function parsed<T>(json: Json<T> | null | undefined): T | null {
  return json === null || json === undefined ? null : valueOf(json);
}
