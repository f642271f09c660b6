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

/** Assigning to this key of an object sets its prototype, so libraries drop the key. The service refuses it instead. */
export const PROTOTYPE_KEY = "__proto__";

/** Returns the path of a key `__proto__` in the value that JSON.parse() built from `text`, or null if no key has this name. */
export function findPrototypeKey(value: unknown, text: string): string | null {
  // The text may also spell the key with an escape.
  if (!text.includes(PROTOTYPE_KEY) && !text.includes("\\u")) return null;
  // Uses no recursion, because JSON.parse() accepts any depth.
  const open: Parent[] = [{ value, key: "", parent: null }];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (typeof at.value !== "object" || at.value === null) continue;
    for (const [key, inner] of Object.entries(at.value)) {
      const child = { value: inner, key, parent: at };
      if (key === PROTOTYPE_KEY) return formatPath(child);
      if (typeof inner === "object") open.push(child);
    }
  }
  return null;
}

interface Parent {
  value: unknown;
  key: string;
  parent: Parent | null;
}

function formatPath(last: Parent): string {
  const keys: string[] = [];
  for (let at: Parent | null = last; at !== null && at.parent !== null; at = at.parent) keys.push(at.key);
  return keys.reverse().join(".");
}

export function joinJson<T>(items: readonly Json<T>[]): Json<T[]> {
  // A single join: adding brackets to a joined text would copy megabytes again.
  return ["[", ...items.flatMap((item, at) => at === 0 ? [item] : [",", item]), "]"].join("") as Json<T[]>;
}
