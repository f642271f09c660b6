declare const held: unique symbol;

/** JSON text of a T. SQL builds most of it, and the service sends it unparsed (decision 0003). */
export type Json<T> = string & { readonly [held]?: T };

export function formatJson<T>(value: T): Json<T> {
  return JSON.stringify(value) as Json<T>;
}

/** Parses a JSON text. The service wrote it, so nothing is checked. */
export function parseJson<T>(json: Json<T>): T {
  return JSON.parse(json);
}

export function joinJson<T>(items: readonly Json<T>[]): Json<T[]> {
  // A single join: adding brackets to a joined text would copy megabytes again.
  return ["[", ...items.flatMap((item, at) => at === 0 ? [item] : [",", item]), "]"].join("") as Json<T[]>;
}
