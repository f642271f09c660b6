import type { z } from "zod";
import type { Json } from "../../domain/call/json.ts";
import type { Database, Value } from "./database.ts";

declare const made: unique symbol;

/** A SQL expression that makes the JSON text of a T. */
export type JsonSql<T> = string & { readonly [made]?: T };

/**
 * The JSON that the API shows of a row, made in SQL (decision 0003): every field of `schema` from the column of its name,
 * or from the expression that `own` has for it. One expression serves lists and single reads, so they cannot differ.
 */
export function shown<S extends z.ZodObject>(
  table: string,
  schema: S,
  own: { readonly [K in keyof z.output<S>]?: string } = {},
): JsonSql<z.output<S>> {
  const expressions: Partial<Record<string, string>> = own;
  const fields = fieldsOf(schema).map((name) =>
    `'${name}', ${expressions[name] ?? readColumn(`${table}.${name}`, schema.shape[name] as z.ZodType)}`
  );
  return `json_object(\n  ${fields.join(",\n  ")})`;
}

type Shown<S extends z.ZodObject> = Exclude<keyof z.output<S> & string, "truncated">;

/** The names of the fields of an object, in the order in which the API shows them. */
export function fieldsOf<S extends z.ZodObject>(schema: S): Shown<S>[] {
  // That texts were cut is said where they are (bounded.ts); no column holds it.
  return Object.keys(schema.shape).filter((name) => name !== "truncated") as Shown<S>[];
}

/** The value of a field as its column holds it: objects and lists as JSON text. */
export function columnValue<S extends z.ZodObject>(
  schema: S,
  name: keyof z.output<S> & string,
  value: z.output<S>[typeof name],
): Value {
  return kindOf(schema.shape[name] as z.ZodType) === "json" ? JSON.stringify(value) : value as Value;
}

function readColumn(column: string, field: z.ZodType): string {
  const kind = kindOf(field);
  if (kind === "plain") return column;
  return kind === "json" ? `json(${column})` : `json(iif(${column}, 'true', 'false'))`;
}

const JSON_TYPES = ["array", "object", "record", "union"];

function kindOf(field: z.ZodType): "plain" | "boolean" | "json" {
  const { type } = field.def;
  if (type === "nullable" || type === "optional") return kindOf((field as z.ZodNullable<z.ZodType>).unwrap());
  if (type === "boolean") return "boolean";
  return JSON_TYPES.includes(type) ? "json" : "plain";
}

/** The JSON of the first row; `rest` is the query from its `from` on. Null when there is none. */
export async function firstShown<T>(
  db: Database,
  json: JsonSql<T>,
  rest: string,
  args: Value[] = [],
): Promise<Json<T> | null> {
  return (await db.first<{ json: Json<T> }>(`select ${json} as json ${rest}`, args))?.json ?? null;
}

/** The JSON of every row; `rest` is the query from its `from` on. */
export async function allShown<T>(
  db: Database,
  json: JsonSql<T>,
  rest: string,
  args: Value[] = [],
): Promise<Json<T>[]> {
  const rows = await db.read<{ json: Json<T> }>(`select ${json} as json ${rest}`, args);
  return rows.map((row) => row.json);
}
