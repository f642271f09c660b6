import { createHash } from "node:crypto";

import { Buffer } from "node:buffer";

/** The length of a text in UTF-8 bytes, the unit of every limit of text (contract 1.8). Nothing is made on the way. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The start of a text in at most `max` bytes of UTF-8, without a character that was cut in half. */
export function cutToBytes(text: string, max: number): string {
  if (byteLength(text) <= max) return text;
  // No character is less than a byte, so that what lies behind need not be made into bytes.
  return decoder.decode(encoder.encode(text.slice(0, max)).subarray(0, max)).replace(/\ufffd+$/, "");
}

/** The pieces joined; a single piece is returned as it is, not copied. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array()] = parts;
  if (parts.length <= 1) return first;
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Returns the SHA-256 of a text, in hex. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
