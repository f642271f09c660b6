import { invalid } from "./error.ts";
import { countBytes } from "../../base/bytes.ts";
import { CONTENT_MAX_BYTES } from "./field.ts";

const INSERTION = /\{\{\s*(\/[^{}]*?|)\s*\}\}/g;

/**
 * Replaces each `{{/json/pointer}}` by that value of `body` and never expands inserted text again (contract 10, `webhook`).
 * Throws `invalid_request` for an absent value or a text that becomes too long.
 */
export function expand(template: string, body: unknown): string {
  let size = 0;
  const text = template.replace(INSERTION, (_match, pointer: string) => {
    const value = findValue(body, pointer);
    if (value === undefined) {
      throw invalid("", `the body has no value at ${pointer}, which the template needs`);
    }
    const words = typeof value === "string" ? value : formatValue(pointer, value);
    size += countBytes(words);
    if (size > CONTENT_MAX_BYTES) {
      throw invalid("", `the text would be larger than ${CONTENT_MAX_BYTES} bytes`);
    }
    return words;
  });
  return text;
}

function formatValue(pointer: string, value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // JSON.parse accepts deeper nesting than JSON.stringify.
    if (error instanceof RangeError) {
      throw invalid("", `the value at ${pointer} is nested too deeply`);
    }
    throw error;
  }
}

/** Resolves a JSON pointer (RFC 6901). Only the body's own properties count, none of JavaScript's. */
function findValue(body: unknown, pointer: string): unknown {
  let value = body;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}
