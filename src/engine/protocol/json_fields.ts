import type { Line } from "./adapter.ts";

/** Returns the object under a key, or {}. */
export function getObject(line: Line, key: string): Line {
  const value = line[key];
  return isObject(value) ? value : {};
}

/** Returns the text under a key, or "". */
export function getText(line: Line, key: string): string {
  const value = line[key];
  return typeof value === "string" ? value : "";
}

/** Returns the number under a key, or 0. */
export function getNumber(line: Line, key: string): number {
  const value = line[key];
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** Returns the objects of the list under a key, or []. */
export function getList(line: Line, key: string): Line[] {
  const value = line[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function isObject(value: unknown): value is Line {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a text that should be a JSON object. Returns null for any other text. */
export function parseObject(text: string): Line | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Formats content as text: a string, a part with text, or a list of both. */
export function formatContent(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(formatContent).filter((text) => text !== "").join("\n");
  if (!isObject(value)) return "";
  if (typeof value.text === "string") return value.text;
  if (value.content !== undefined) return formatContent(value.content);
  return typeof value.type === "string" ? `[${value.type}]` : JSON.stringify(value);
}

// The keys that describe a tool call best, in order.
const DESCRIBING_KEYS = [
  "command",
  "cmd",
  "file_path",
  "filePath",
  "path",
  "pattern",
  "query",
  "url",
  "prompt",
];

/** Formats the input of a tool as one text: its command or path, or else all of it. */
export function formatInput(input: unknown): string {
  if (typeof input === "string") return input;
  if (!isObject(input)) return input === undefined || input === null ? "" : JSON.stringify(input);
  for (const key of DESCRIBING_KEYS) {
    const value = input[key];
    if (typeof value === "string" && value !== "") return value;
    if (Array.isArray(value) && value.every((part) => typeof part === "string")) return value.join(" ");
  }
  return Object.keys(input).length === 0 ? "" : JSON.stringify(input);
}

/**
 * Builds a settings file: `defaults`, overridden by the present text, overridden by `ours`. Text that is not a JSON object stays
 * unchanged, so that its engine reports the problem.
 */
export function mergeJson(defaults: object, present: string | null, ours: object): string {
  const text = present?.trim() ? present : "{}";
  const parsed = parseObject(text);
  if (parsed === null) return text;
  return `${JSON.stringify(mergeObjects(mergeObjects({ ...defaults }, parsed), { ...ours }), null, 2)}\n`;
}

/** Merges two objects recursively. The second wins. */
function mergeObjects(first: Line, second: Line): Line {
  // An assignment to the key `__proto__` would lose its value.
  const all = new Map(Object.entries(first));
  for (const [key, value] of Object.entries(second)) {
    const before = all.get(key);
    all.set(key, isObject(before) && isObject(value) ? mergeObjects(before, value) : value);
  }
  return Object.fromEntries(all);
}
