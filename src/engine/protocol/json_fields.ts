import type { Line } from "./adapter.ts";

/** The object under a key, {} when there is none. */
export function objectAt(line: Line, key: string): Line {
  const value = line[key];
  return isObject(value) ? value : {};
}

/** The text under a key, "" when there is none. */
export function textAt(line: Line, key: string): string {
  const value = line[key];
  return typeof value === "string" ? value : "";
}

/** The number under a key, 0 when there is none. */
export function numberAt(line: Line, key: string): number {
  const value = line[key];
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** The objects of the list under a key. */
export function listAt(line: Line, key: string): Line[] {
  const value = line[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Whether it is a JSON object. */
export function isObject(value: unknown): value is Line {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of a content: a string, a part with text, or a list of these. */
export function contentText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(contentText).filter((text) => text !== "").join("\n");
  if (!isObject(value)) return "";
  if (typeof value.text === "string") return value.text;
  if (value.content !== undefined) return contentText(value.content);
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

/** The input of a tool as one text: its command or path if it has one, else all of it. */
export function inputText(input: unknown): string {
  if (typeof input === "string") return input;
  if (!isObject(input)) return input === undefined || input === null ? "" : JSON.stringify(input);
  for (const key of DESCRIBING_KEYS) {
    const value = input[key];
    if (typeof value === "string" && value !== "") return value;
    if (Array.isArray(value) && value.every((part) => typeof part === "string")) return value.join(" ");
  }
  return Object.keys(input).length === 0 ? "" : JSON.stringify(input);
}
