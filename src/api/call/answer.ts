import type { Deleted } from "../../domain/call/deleted.ts";
import { type Json, jsonOf } from "../../domain/call/json.ts";
import type { Listing } from "../../domain/call/page.ts";

/**
 * The answer of every operation that answers JSON: the text of a T, and what goes into headers. SQL makes the text where that
 * is faster (decision 0003). Either way it has the type that the route promises.
 */
export interface Answer<T> {
  json: Json<T>;
  /** Rows that match, counted up to COUNT_MAX + 1 (contract 1.4). */
  total?: number;
  /** The query parameter that leads to the next page; null at the end (contract 1.4). */
  next?: NextPage | null;
  /** This is the answer to an earlier request with the same idempotency key (contract 1.9). */
  replayed?: boolean;
  /** The request was carried out, but something in it looks wrong. */
  warning?: string;
  /** `lines`: a list is sent as JSON lines, one for each of its objects. */
  form?: "lines";
}

/** A query parameter with its value. */
export interface NextPage {
  name: string;
  value: string;
}

/** No content (204). */
export const NOTHING: Answer<undefined> = { json: "" as Json<undefined> };

/** What a deletion answers (contract 1.3). */
export const DELETED: Answer<Deleted> = { json: jsonOf<Deleted>({ status: "deleted" }) };

/** The answer that holds `value`. */
export function answer<T>(value: T): Answer<T> {
  return { json: jsonOf(value) };
}

/** The answer that is a whole list. */
export function whole<T>(rows: T[]): Answer<T[]> {
  return { json: jsonOf(rows), total: rows.length, next: null };
}

/** The answer that is one page of a list. */
export function page<T>({ json, total, next }: Listing<T>): Answer<T[]> {
  return { json, total, next: next === null ? null : { name: "cursor", value: next } };
}
