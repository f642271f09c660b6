import type { Settings } from "./files.ts";

/** Returns a value with its ${VARIABLES}, or null if one is unknown or the value is kept elsewhere. */
export function resolveValue(value: unknown, env: Settings): string | null {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") return null;
  let isKnown = true;
  const text = value.replace(/\$\{(\w+)\}/g, (_match, name: string) => {
    const found = Object.hasOwn(env, name) ? env[name] : undefined;
    if (typeof found === "string") return found;
    isKnown = false;
    return "";
  });
  return isKnown ? text : null;
}
