import { isObject } from "./line.ts";

/**
 * A settings file's new text: `standard` where it says nothing, what is there, and `ours` over both. What is there
 * and is no JSON object is left alone: it is for its engine to complain about.
 */
export function mergedJson(standard: object, present: string | null, ours: object): string {
  const text = present?.trim() ? present : "{}";
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isObject(parsed)) return text;
    return `${JSON.stringify(merged(merged({ ...standard }, parsed), { ...ours }), null, 2)}\n`;
  } catch {
    return text;
  }
}

/** The objects as one: of what both have the second's, and objects inside of them merged as well. */
export function merged(
  first: Record<string, unknown>,
  second: Record<string, unknown>,
): Record<string, unknown> {
  const all = { ...first };
  for (const [key, value] of Object.entries(second)) {
    const before = all[key];
    all[key] = isObject(before) && isObject(value) ? merged(before, value) : value;
  }
  return all;
}
