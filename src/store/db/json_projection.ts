import type { z } from "zod";
import type { Json } from "../../domain/call/json.ts";
import type { Database, Value } from "./database.ts";

declare const made: unique symbol;

/** A SQL expression that creates the JSON text of a T. */
export type JsonSql<T> = string & { readonly [made]?: T };

/** Builds a row's JSON for the API (decision 0003): each field of `schema` from its column, or from its expression in `own`. */
export function buildJsonSql<S extends z.ZodObject>(
  table: string,
  schema: S,
  own: { readonly [K in keyof z.output<S>]?: string } = {},
): JsonSql<z.output<S>> {
  const expressions: Partial<Record<string, string>> = own;
  const fields = listFields(schema).map((name) =>
    `'${name}', ${expressions[name] ?? buildColumnSql(`${table}.${name}`, schema.shape[name] as z.ZodType)}`
  );
  return `json_object(\n  ${fields.join(",\n  ")})`;
}

type FieldName<S extends z.ZodObject> = Exclude<keyof z.output<S> & string, "truncated">;

/** Lists the fields of an object in the order of the API. */
export function listFields<S extends z.ZodObject>(schema: S): FieldName<S>[] {
  // size_limited_read.ts adds `truncated`. No column stores it.
  return Object.keys(schema.shape).filter((name) => name !== "truncated") as FieldName<S>[];
}

/** Returns the column value of a field. Objects and lists become JSON text. */
export function toColumnValue<S extends z.ZodObject>(
  schema: S,
  name: keyof z.output<S> & string,
  value: z.output<S>[typeof name],
): Value {
  return classifyField(schema.shape[name] as z.ZodType) === "json" ? JSON.stringify(value) : value as Value;
}

function buildColumnSql(column: string, field: z.ZodType): string {
  const kind = classifyField(field);
  if (kind === "plain") return column;
  return kind === "json" ? `json(${column})` : `json(iif(${column}, 'true', 'false'))`;
}

const JSON_TYPES = ["array", "object", "record", "union"];

function classifyField(field: z.ZodType): "plain" | "boolean" | "json" {
  const { type } = field.def;
  if (type === "nullable" || type === "optional") {
    return classifyField((field as z.ZodNullable<z.ZodType>).unwrap());
  }
  if (type === "boolean") return "boolean";
  return JSON_TYPES.includes(type) ? "json" : "plain";
}

/** Returns the JSON of the first row, or null. `rest` is the query from its `from` on. */
export function readJson<T>(
  db: Database,
  json: JsonSql<T>,
  rest: string,
  args: Value[] = [],
): Promise<Json<T> | null> {
  return db.readValue<Json<T>>(`select ${json} ${rest}`, args);
}

/** Returns the JSON of every row. `rest` is the query from its `from` on. */
export function readAllJson<T>(
  db: Database,
  json: JsonSql<T>,
  rest: string,
  args: Value[] = [],
): Promise<Json<T>[]> {
  return db.readColumn<Json<T>>(`select ${json} as json ${rest}`, args);
}
