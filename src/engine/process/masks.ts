import { Buffer } from "node:buffer";

// A shorter text would be masked inside ordinary words.
const MASK_MIN_CHARACTERS = 8;
// Programs wrap base64 text at this length.
const BASE64_LINE_CHARACTERS = 76;
const GROUP_BYTES = 3;
const GROUP_CHARACTERS = 4;

/** Lists the texts in which values of secrets may appear in output: whole, by line, in JSON, percent-encoded and in base64. */
export function buildMasks(values: readonly string[]): string[] {
  const texts = values.flatMap((value) => [...buildTextForms(value), ...buildBase64Forms(value)]);
  return [...new Set(texts)].filter((text) => text.length >= MASK_MIN_CHARACTERS);
}

function buildTextForms(value: string): string[] {
  // A value below the limit is not treated as a secret in any form.
  if (value.length < MASK_MIN_CHARACTERS) return [];
  const lines = value.split(/\r?\n/).flatMap((line) => [line, line.trim()])
    .filter((line) => line.length >= MASK_MIN_CHARACTERS);
  return [value, value.trim(), ...lines].flatMap((text) => [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ]);
}

/**
 * In base64 the same bytes look different by their position in the encoded text, as in `user:password`. Each position has the
 * characters that depend on the value alone.
 */
function buildBase64Forms(value: string): string[] {
  if (value.length < MASK_MIN_CHARACTERS) return [];
  const bytes = Buffer.from(value);
  const positions = Array.from({ length: GROUP_BYTES }, (_, before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]);
    const whole = encoded.subarray(0, encoded.length - encoded.length % GROUP_BYTES);
    return whole.toString("base64").slice(before === 0 ? 0 : GROUP_CHARACTERS);
  });
  const whole = bytes.toString("base64");
  const wrapped = whole.match(new RegExp(`.{1,${BASE64_LINE_CHARACTERS}}`, "g")) ?? [];
  return [whole, ...wrapped, ...positions].flatMap((text) => [
    text,
    text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
  ]);
}
