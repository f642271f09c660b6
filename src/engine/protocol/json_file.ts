import { isObject } from "./json_fields.ts";

/**
 * Builds a settings file: `defaults`, overridden by the present text, overridden by `ours`. Text that is not a JSON object stays
 * unchanged, so that its engine reports the problem.
 */
export function mergeJson(defaults: object, present: string | null, ours: object): string {
  const text = present?.trim() ? present : "{}";
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isObject(parsed)) return text;
    return `${JSON.stringify(mergeObjects(mergeObjects({ ...defaults }, parsed), { ...ours }), null, 2)}\n`;
  } catch {
    return text;
  }
}

/** Merges two objects recursively. The second wins. */
function mergeObjects(
  first: Record<string, unknown>,
  second: Record<string, unknown>,
): Record<string, unknown> {
  const all = { ...first };
  for (const [key, value] of Object.entries(second)) {
    const before = all[key];
    all[key] = isObject(before) && isObject(value) ? mergeObjects(before, value) : value;
  }
  return all;
}
