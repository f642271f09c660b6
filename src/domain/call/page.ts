import type { Json } from "./json.ts";
import { id, parseInteger, parseIntegerOr } from "./field.ts";

export const PAGE_SIZE_DEFAULT = 50;
export const PAGE_SIZE_MAX = 100;
export const WORKER_PAGE_SIZE_MAX = 200;

// Clients read later pages by cursor. Times the page size this is still far below 2^53.
const PAGE_MAX = 100_000_000;

/** Returns the query parameters of a paged list: page or cursor, and page_size (contract 1.4). */
export function buildPageQuery(max: number = PAGE_SIZE_MAX) {
  return {
    page: parseInteger(1, PAGE_MAX).default(1).meta({ type: "integer", minimum: 1, default: 1 }),
    page_size: parseIntegerOr(PAGE_SIZE_DEFAULT, [1, max]),
    cursor: id.optional().meta({ description: "continue after this id; taken from the header Link" }),
  };
}

/** The requested page. A cursor is the id of the last row of the previous page. */
export interface Page {
  page: number;
  page_size: number;
  cursor?: string | undefined;
}

/** A page of a list of T: the JSON array as text, and the values of the headers. */
export interface Listing<T> {
  json: Json<T[]>;
  /** Number of matching rows, at most COUNT_MAX + 1. */
  total: number;
  /** Cursor of the next page, or null at the end. */
  next: string | null;
}

/** Totals are exact up to this number, then "10000+" (contract 1.4). */
export const COUNT_MAX = 10_000;

/** Formats the value of X-Total-Count. */
export function formatTotal(total: number): string {
  return total > COUNT_MAX ? `${COUNT_MAX}+` : String(total);
}
