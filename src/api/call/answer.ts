import { notFound } from "../../domain/call/error.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";
import { formatJson, type Json } from "../../domain/call/json.ts";
import type { Listing } from "../../domain/call/page.ts";

/** The JSON text of a T and values for headers. SQL builds the text where that is faster (decision 0003). */
export interface Answer<T> {
  json: Json<T>;
  /** Number of matching rows, at most COUNT_MAX + 1 (contract 1.4). */
  total?: number;
  /** The query parameter of the next page, or null on the last page. */
  next?: NextPage | null;
  /** True for the stored answer of an earlier request with the same idempotency key. */
  replayed?: boolean;
  /** A suspicious detail of a request that succeeded. */
  warning?: string;
  /** `lines`: the list is sent as JSON lines, one object per line. */
  form?: "lines";
}

export interface NextPage {
  name: string;
  value: string;
}

export const NOTHING: Answer<undefined> = { json: "" as Json<undefined> };

export const DELETED: Answer<DeleteResult> = { json: formatJson<DeleteResult>({ status: "deleted" }) };

export function answer<T>(value: T): Answer<T> {
  return { json: formatJson(value) };
}

/** Builds the answer for a complete list. */
export function answerList<T>(rows: T[]): Answer<T[]> {
  return { json: formatJson(rows), total: rows.length, next: null };
}

/** Builds the answer for one page of a list. */
export function answerPage<T>({ json, total, next }: Listing<T>): Answer<T[]> {
  return { json, total, next: next === null ? null : { name: "cursor", value: next } };
}

/** Returns `found`. Throws `not_found` when nothing was found, or nothing that the caller can see (contract 1.7). */
export function requireFound<T>(found: T | null | undefined, what: string, id: string): T {
  if (found === null || found === undefined) throw notFound(what, id);
  return found;
}
