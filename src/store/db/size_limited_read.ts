import { countBytes } from "../../base/bytes.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import type { Json } from "../../domain/call/json.ts";
import type { Database, Value } from "./database.ts";
import type { JsonSql } from "./json_projection.ts";

/** Most bytes of text in one read (contract 8.18, reliability BYT-1). */
export const READ_MAX_BYTES = 8 * 1024 * 1024;

/** Objects of one table that may hold large texts. */
export interface Objects<T> {
  table: string;
  /** SQL expression of the API's JSON. */
  json: JsonSql<T>;
  /** Columns with large texts. The JSON has the same names. */
  texts?: readonly string[];
  /** The source of one object by id. Default: the table by its column `id`. */
  find?: (id: string) => Slice;
}

export interface MeasuredObject {
  id: string;
  bytes: number;
}

/** The part of a query after its columns. */
export interface Slice {
  /** The clauses from `from` to `limit`. */
  sql: string;
  args: Value[];
}

interface SizeLimit {
  over: "end" | "cut";
  maxBytes?: number;
}

interface BoundedRows<T> {
  rows: { id: string; json: Json<T> }[];
  /** Whether more rows of the slice follow, beyond the limit. */
  ended: boolean;
}

// A control character of one byte takes six in JSON, and every object has other fields.
const JSON_BYTES_PER_BYTE = 6;
const FRAME_BYTES = 4_000;
// Backspace, tab, line feed, form feed and carriage return take two characters.
const SHORT_ESCAPES = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);

/**
 * Reads the objects of a slice with at most `maxBytes` of text. `end` stops early, after one object at least. `cut` reads all
 * objects, cuts the largest texts, and marks their objects with `truncated: true`. No larger text exists at any time.
 */
export async function readBounded<T>(
  db: Database,
  objects: Objects<T>,
  slice: Slice,
  limit: SizeLimit,
): Promise<BoundedRows<T>> {
  const { table, json } = objects;
  const sizes = await db.read<MeasuredObject>(
    `select ${table}.id as id, ${buildBytesSql(objects)} as bytes ${slice.sql}`,
    slice.args,
  );
  if (!fits(sizes, limit.maxBytes)) return await readMeasured(db, objects, sizes, limit);
  const whole = `select ${table}.id as id, ${json} as json ${slice.sql}`;
  return { rows: await db.read(whole, slice.args), ended: false };
}

/** Reads objects like readBounded(), with known sizes. */
export async function readMeasured<T>(
  db: Database,
  objects: Objects<T>,
  sizes: readonly MeasuredObject[],
  { over, maxBytes = READ_MAX_BYTES }: SizeLimit,
): Promise<BoundedRows<T>> {
  return over === "end"
    ? await readUntil(db, objects, sizes, maxBytes)
    : { rows: await readCut(db, objects, sizes, maxBytes), ended: false };
}

/** Whether one read can hold the objects, whatever their characters. */
export function fits(sizes: readonly MeasuredObject[], maxBytes: number = READ_MAX_BYTES): boolean {
  return sizes.reduce((sum, { bytes }) => sum + estimateJsonBytes(bytes), 0) <= maxBytes;
}

/** Whether one read can hold the slice, whatever its characters. */
export async function isSmall(db: Database, objects: Objects<unknown>, slice: Slice): Promise<boolean> {
  if ((objects.texts ?? []).length === 0) return true;
  const row = await db.first<{ bytes: number }>(
    `select coalesce(sum(bytes), 0) * ${JSON_BYTES_PER_BYTE} + count(*) * ${FRAME_BYTES} as bytes
    from (select ${buildBytesSql(objects)} as bytes ${slice.sql})`,
    slice.args,
  );
  return (row?.bytes ?? 0) <= READ_MAX_BYTES;
}

function estimateJsonBytes(bytes: number): number {
  return bytes * JSON_BYTES_PER_BYTE + FRAME_BYTES;
}

// The byte length precedes a text in its row, so SQLite does not read the text.
function buildBytesSql({ table, texts = [] }: Objects<unknown>): string {
  return texts.length === 0 ? "0" : texts.map((name) => `octet_length(${table}.${name})`).join(" + ");
}

async function readUntil<T>(
  db: Database,
  objects: Objects<T>,
  sizes: readonly MeasuredObject[],
  maxBytes: number,
): Promise<BoundedRows<T>> {
  const rows: BoundedRows<T>["rows"] = [];
  let left = maxBytes;
  for (const { id, bytes } of sizes) {
    if (rows.length > 0 && bytes > left) return { rows, ended: true };
    const json = await readOne(db, objects, id);
    if (json === null) continue;
    left -= countBytes(json);
    if (rows.length > 0 && left < 0) return { rows, ended: true };
    rows.push({ id, json });
  }
  return { rows, ended: false };
}

// Distributes the space from the smallest object to the largest, so that larger objects get the space that small objects do not use.
async function readCut<T>(
  db: Database,
  objects: Objects<T>,
  sizes: readonly MeasuredObject[],
  maxBytes: number,
): Promise<BoundedRows<T>["rows"]> {
  const read = new Map<string, Json<T>>();
  let left = maxBytes;
  const bySize = [...sizes].sort((a, b) => a.bytes - b.bytes);
  for (const [index, { id, bytes }] of bySize.entries()) {
    const share = Math.max(0, Math.floor(left / (bySize.length - index)));
    const json = estimateJsonBytes(bytes) <= share
      ? await readOne(db, objects, id)
      : await readShortened(db, objects, id, share);
    if (json === null) continue;
    left -= countBytes(json);
    read.set(id, json);
  }
  return sizes.flatMap(({ id }) => {
    const json = read.get(id);
    return json === undefined ? [] : [{ id, json }];
  });
}

async function readOne<T>(db: Database, objects: Objects<T>, id: string): Promise<Json<T> | null> {
  await yieldToLoop();
  const { sql, args } = buildSourceSql(objects, id);
  return await db.readValue<Json<T>>(`select ${objects.json} as json ${sql}`, args);
}

function buildSourceSql({ table, find }: Objects<unknown>, id: string): Slice {
  return find?.(id) ?? { sql: `from ${table} where ${table}.id = ?`, args: [id] };
}

// The texts are separate from the JSON: as JSON they could be six times as large, only to be cut.
async function readShortened<T>(
  db: Database,
  objects: Objects<T>,
  id: string,
  share: number,
): Promise<Json<T> | null> {
  await yieldToLoop();
  const { table, json, texts = [] } = objects;
  const { sql, args } = buildSourceSql(objects, id);
  const frame = texts.reduce((text, name) => text.replaceAll(`${table}.${name},`, "'',"), json as string);
  const starts = texts.map((name, index) => `substr(${table}.${name}, 1, ?) as text${index}`);
  const row = await db.first<{ json: string; bytes: number; [text: string]: unknown }>(
    `select ${frame} as json, ${buildBytesSql(objects)} as bytes, ${starts.join(", ")} ${sql}`,
    // A character has at least one byte.
    [...texts.map(() => Math.max(1, share)), ...args],
  );
  if (row === null) return null;
  const object = JSON.parse(row.json) as Record<string, unknown>;
  let left = Math.max(0, share - FRAME_BYTES);
  let keptBytes = 0;
  const byLength = texts.map((name, index) => ({ name, text: String(row[`text${index}`] ?? "") }))
    .sort((a, b) => a.text.length - b.text.length);
  for (const [index, { name, text }] of byLength.entries()) {
    const cut = cutToJson(text, Math.floor(left / (byLength.length - index)));
    object[name] = cut.text;
    left -= cut.jsonBytes;
    keptBytes += countBytes(cut.text);
  }
  return JSON.stringify(keptBytes < row.bytes ? { ...object, truncated: true } : object) as Json<T>;
}

/** Cuts a text to at most `maxBytes` as JSON, never within a character, and returns its size as JSON. */
function cutToJson(text: string, maxBytes: number): { text: string; jsonBytes: number } {
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) ?? 0;
    const size = countJsonBytes(code);
    if (bytes + size > maxBytes) return { text: text.slice(0, at), jsonBytes: bytes };
    bytes += size;
    at += code > 0xffff ? 2 : 1;
  }
  return { text, jsonBytes: bytes };
}

function countJsonBytes(code: number): number {
  if (code < 0x20) return SHORT_ESCAPES.has(code) ? 2 : 6;
  if (code < 0x80) return code === 0x22 || code === 0x5c ? 2 : 1;
  if (code < 0x800) return 2;
  if (code > 0xffff) return 4;
  return code >= 0xd800 && code <= 0xdfff ? 6 : 3;
}
