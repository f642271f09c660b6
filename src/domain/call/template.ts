import { invalid } from "./error.ts";
import { byteLength } from "../../base/bytes.ts";
import { CONTENT_MAX_BYTES } from "./field.ts";

const INSERTION = /\{\{\s*(\/[^{}]*?|)\s*\}\}/g;

/**
 * A text with each `{{/json/pointer}}` replaced by that value of `body`; what is inserted is never looked at again (contract 10,
 * `webhook`). Throws `invalid_request` when the body does not have it, or the text becomes too long.
 */
export function expand(template: string, body: unknown): string {
  let size = 0;
  const text = template.replace(INSERTION, (_match, pointer: string) => {
    const value = valueAt(body, pointer);
    if (value === undefined) {
      throw invalid("", `the body has nothing at ${pointer}, which the template needs`);
    }
    const words = typeof value === "string" ? value : jsonOf(pointer, value);
    size += byteLength(words);
    if (size > CONTENT_MAX_BYTES) {
      throw invalid("", `the text would be larger than ${CONTENT_MAX_BYTES} bytes`);
    }
    return words;
  });
  return text;
}

function jsonOf(pointer: string, value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // What is nested too deeply for the stack can be parsed, but not written.
    if (error instanceof RangeError) {
      throw invalid("", `what the body has at ${pointer} is nested too deeply`);
    }
    throw error;
  }
}

/** RFC 6901. Only what the body itself has counts, and nothing that JavaScript adds. */
function valueAt(body: unknown, pointer: string): unknown {
  let value = body;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}
