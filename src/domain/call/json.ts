declare const held: unique symbol;

/** JSON text of a T. SQL makes most of it, and it goes to the client as it is (decision 0003). */
export type Json<T> = string & { readonly [held]?: T };

/** The JSON text of a value. */
export function jsonOf<T>(value: T): Json<T> {
  return JSON.stringify(value) as Json<T>;
}

/** What a JSON text holds. It is our own text, so nothing is checked. */
export function valueOf<T>(json: Json<T>): T {
  return JSON.parse(json);
}

/** A list of JSON texts as one. */
export function jsonList<T>(items: readonly Json<T>[]): Json<T[]> {
  // In one go: brackets around a joined text would make a copy of megabytes once more.
  return ["[", ...items.flatMap((item, at) => at === 0 ? [item] : [",", item]), "]"].join("") as Json<T[]>;
}
