import { isObject } from "./json_fields.ts";

/**
 * The new text of a settings file: `defaults`, overridden by what is there, overridden by `ours`. A file that is not a JSON
 * object stays as it is, so that its engine reports the problem.
 */
export function mergedJson(defaults: object, present: string | null, ours: object): string {
  const text = present?.trim() ? present : "{}";
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isObject(parsed)) return text;
    return `${JSON.stringify(merged(merged({ ...defaults }, parsed), { ...ours }), null, 2)}\n`;
  } catch {
    return text;
  }
}

/** Both objects in one. The second wins; objects inside are merged in the same way. */
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
