import { byteLength } from "../../base/bytes.ts";
import { turn } from "../../base/yield_to_loop.ts";
import type { Json } from "../../domain/call/json.ts";
import type { Database, Row, Value } from "./database.ts";
import type { JsonSql } from "./json_projection.ts";

/** Most bytes of text that one read makes (contract 8.18, reliability BYT-1). */
export const READ_MAX_BYTES = 8 * 1024 * 1024;

/** Objects of one table that may hold large texts. */
export interface Objects<T> {
  table: string;
  /** SQL expression of the JSON that the API shows. */
  json: JsonSql<T>;
  /** Columns that hold large texts; in the JSON they have the same names. */
  texts?: readonly string[];
  /** Where the one with an id is read from; without it, the table by its column `id`. */
  find?: (id: string) => Slice;
}

/** An object that is not read yet, and how many bytes its large texts have. */
export interface Measured {
  id: string;
  bytes: number;
}

/** Rows in an order: everything of a query behind its columns. */
export interface Slice {
  /** From `from` to `limit`. */
  sql: string;
  args: Value[];
}

/** What happens where there is more text than `maxBytes`. */
interface Bound {
  over: "end" | "cut";
  maxBytes?: number;
}

/** What was read, in the order of the slice. */
interface Bounded<T> {
  rows: { id: string; json: Json<T> }[];
  /** The slice has rows behind these: they would have been too much text. */
  ended: boolean;
}

// A control character of one byte is six in JSON, and every object has a frame of other fields.
const JSON_BYTES_PER_BYTE = 6;
const FRAME_BYTES = 4_000;
// Backspace, tab, line feed, form feed, carriage return: a backslash and a letter.
const SHORT_ESCAPES = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);

/**
 * The objects of a slice, with at most `maxBytes` of text in all. `end`: it ends earlier, behind one object at least. `cut`: it has all
 * of them, the largest texts are cut, and objects with a cut text have `truncated: true`. Nothing larger is made on the way.
 */
export async function readBounded<T>(
  db: Database,
  objects: Objects<T>,
  slice: Slice,
  bound: Bound,
): Promise<Bounded<T>> {
  const { table, json } = objects;
  const sizes = await db.read<Measured & Row>(
    `select ${table}.id as id, ${bytesOf(objects)} as bytes ${slice.sql}`,
    slice.args,
  );
  if (!fits(sizes, bound.maxBytes)) return await readMeasured(db, objects, sizes, bound);
  const whole = `select ${table}.id as id, ${json} as json ${slice.sql}`;
  return { rows: await db.read(whole, slice.args), ended: false };
}

/** As readBounded(), for objects that were measured before. */
export async function readMeasured<T>(
  db: Database,
  objects: Objects<T>,
  sizes: readonly Measured[],
  { over, maxBytes = READ_MAX_BYTES }: Bound,
): Promise<Bounded<T>> {
  return over === "end"
    ? await readUntil(db, objects, sizes, maxBytes)
    : { rows: await readCut(db, objects, sizes, maxBytes), ended: false };
}

/** Whether objects can be read in one piece, whatever their texts are made of. */
export function fits(sizes: readonly Measured[], maxBytes: number = READ_MAX_BYTES): boolean {
  return sizes.reduce((sum, { bytes }) => sum + worst(bytes), 0) <= maxBytes;
}

/** Whether a slice is so small that it can be read in one piece, whatever its texts are made of. */
export async function isSmall(db: Database, objects: Objects<unknown>, slice: Slice): Promise<boolean> {
  if ((objects.texts ?? []).length === 0) return true;
  const row = await db.first<{ bytes: number }>(
    `select coalesce(sum(bytes), 0) * ${JSON_BYTES_PER_BYTE} + count(*) * ${FRAME_BYTES} as bytes
    from (select ${bytesOf(objects)} as bytes ${slice.sql})`,
    slice.args,
  );
  return (row?.bytes ?? 0) <= READ_MAX_BYTES;
}

function worst(bytes: number): number {
  return bytes * JSON_BYTES_PER_BYTE + FRAME_BYTES;
}

// The length in bytes stands in front of a text: SQLite does not read the text for it.
function bytesOf({ table, texts = [] }: Objects<unknown>): string {
  return texts.length === 0 ? "0" : texts.map((name) => `octet_length(${table}.${name})`).join(" + ");
}

async function readUntil<T>(
  db: Database,
  objects: Objects<T>,
  sizes: readonly Measured[],
  maxBytes: number,
): Promise<Bounded<T>> {
  const rows: Bounded<T>["rows"] = [];
  let left = maxBytes;
  for (const { id, bytes } of sizes) {
    if (rows.length > 0 && bytes > left) return { rows, ended: true };
    const json = await readOne(db, objects, id);
    if (json === null) continue;
    left -= byteLength(json);
    if (rows.length > 0 && left < 0) return { rows, ended: true };
    rows.push({ id, json });
  }
  return { rows, ended: false };
}

// From the smallest to the largest: what small ones leave of their share is for the larger ones.
async function readCut<T>(
  db: Database,
  objects: Objects<T>,
  sizes: readonly Measured[],
  maxBytes: number,
): Promise<Bounded<T>["rows"]> {
  const read = new Map<string, Json<T>>();
  let left = maxBytes;
  const bySize = [...sizes].sort((a, b) => a.bytes - b.bytes);
  for (const [index, { id, bytes }] of bySize.entries()) {
    const share = Math.max(0, Math.floor(left / (bySize.length - index)));
    const json = worst(bytes) <= share
      ? await readOne(db, objects, id)
      : await readShortened(db, objects, id, share);
    if (json === null) continue;
    left -= byteLength(json);
    read.set(id, json);
  }
  return sizes.flatMap(({ id }) => {
    const json = read.get(id);
    return json === undefined ? [] : [{ id, json }];
  });
}

async function readOne<T>(db: Database, objects: Objects<T>, id: string): Promise<Json<T> | null> {
  await turn();
  const { sql, args } = findOne(objects, id);
  const row = await db.first<{ json: Json<T> }>(`select ${objects.json} as json ${sql}`, args);
  return row?.json ?? null;
}

function findOne({ table, find }: Objects<unknown>, id: string): Slice {
  return find?.(id) ?? { sql: `from ${table} where ${table}.id = ?`, args: [id] };
}

// The texts come beside the JSON: as JSON they would be up to six times as large, only to be cut.
async function readShortened<T>(
  db: Database,
  objects: Objects<T>,
  id: string,
  share: number,
): Promise<Json<T> | null> {
  await turn();
  const { table, json, texts = [] } = objects;
  const { sql, args } = findOne(objects, id);
  const frame = texts.reduce((text, name) => text.replaceAll(`${table}.${name},`, "'',"), json as string);
  const starts = texts.map((name, index) => `substr(${table}.${name}, 1, ?) as text${index}`);
  const row = await db.first<{ json: string; bytes: number } & Row>(
    `select ${frame} as json, ${bytesOf(objects)} as bytes, ${starts.join(", ")} ${sql}`,
    // No more characters than bytes are wanted.
    [...texts.map(() => Math.max(1, share)), ...args],
  );
  if (row === null) return null;
  const object = JSON.parse(row.json) as Record<string, unknown>;
  let left = Math.max(0, share - FRAME_BYTES);
  let kept = 0;
  const byLength = texts.map((name, index) => ({ name, text: String(row[`text${index}`] ?? "") }))
    .sort((a, b) => a.text.length - b.text.length);
  for (const [index, { name, text }] of byLength.entries()) {
    const cut = cutToJson(text, Math.floor(left / (byLength.length - index)));
    object[name] = cut.text;
    left -= cut.jsonBytes;
    kept += byteLength(cut.text);
  }
  return JSON.stringify(kept < row.bytes ? { ...object, truncated: true } : object) as Json<T>;
}

/** The start of a text that takes at most so many bytes as JSON, and how many it takes. Never half of a character. */
function cutToJson(text: string, maxBytes: number): { text: string; jsonBytes: number } {
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) ?? 0;
    const size = jsonBytesOf(code);
    if (bytes + size > maxBytes) return { text: text.slice(0, at), jsonBytes: bytes };
    bytes += size;
    at += code > 0xffff ? 2 : 1;
  }
  return { text, jsonBytes: bytes };
}

/** How many bytes JSON.stringify() makes of a character. */
function jsonBytesOf(code: number): number {
  if (code < 0x20) return SHORT_ESCAPES.has(code) ? 2 : 6;
  if (code < 0x80) return code === 0x22 || code === 0x5c ? 2 : 1;
  if (code < 0x800) return 2;
  if (code > 0xffff) return 4;
  return code >= 0xd800 && code <= 0xdfff ? 6 : 3;
}
