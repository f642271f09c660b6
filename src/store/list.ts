import { COUNT_MAX, type Listing, type Page } from "../domain/page.ts";
import type { Database, Value } from "./database.ts";

/** A list over one table, newest id first. Conditions hold all at once. */
export interface ListQuery {
  table: string;
  /** SQL expression of the wire object. */
  json: string;
  where: string[];
  args: Value[];
}

/** One page of a list and the count of the whole, by page number or behind a cursor (contract 1). */
export async function list(db: Database, query: ListQuery, page: Page): Promise<Listing> {
  const { table, json, args } = query;
  const all = query.where.length === 0 ? "" : `where ${query.where.join(" and ")}`;
  const where = page.cursor === undefined ? query.where : [...query.where, `${table}.id < ?`];
  const part = where.length === 0 ? "" : `where ${where.join(" and ")}`;
  const offset = page.cursor === undefined ? (page.page - 1) * page.page_size : 0;
  const rows = await db.read<{ id: string; json: string }>(
    `select ${table}.id as id, ${json} as json
    from ${table}
    ${part}
    order by ${table}.id desc
    limit ? offset ?`,
    [...args, ...(page.cursor === undefined ? [] : [page.cursor]), page.page_size + 1, offset],
  );
  // One row more than asked for tells whether there is a next page without counting.
  const shown = rows.slice(0, page.page_size);
  const more = rows.length > page.page_size;
  const complete = page.cursor === undefined && page.page === 1 && !more;
  return {
    items: shown.map((row) => row.json),
    total: complete ? shown.length : await countUpTo(db, table, all, args),
    next: more ? shown.at(-1)?.id ?? null : null,
  };
}

async function countUpTo(db: Database, table: string, where: string, args: Value[]): Promise<number> {
  const row = await db.first<{ total: number }>(
    `select count(*) as total from (select 1 from ${table} ${where} limit ?)`,
    [...args, COUNT_MAX + 1],
  );
  return row?.total ?? 0;
}

/** Adds `column in (values)`; one value as `=`, which every index can serve in order. */
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

/** The object of a JSON text that our own SQL made. */
export function parsed<T>(json: string | null | undefined): T | null {
  return json === null || json === undefined ? null : JSON.parse(json) as T;
}
