import { createHash } from "node:crypto";

import { Buffer } from "node:buffer";

/** Returns the length of a text in UTF-8 bytes without encoding it. Every text limit uses this unit (contract 1.8). */
export function countBytes(text: string): number {
  return Buffer.byteLength(text);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Returns the start of a text in at most `max` UTF-8 bytes and never splits a character. */
export function cutToBytes(text: string, max: number): string {
  if (countBytes(text) <= max) return text;
  // Every character takes a byte or more, so only the first `max` characters need encoding.
  return decoder.decode(encoder.encode(text.slice(0, max)).subarray(0, max)).replace(/\ufffd+$/, "");
}

/** Concatenates the chunks. Returns a single chunk without copying it. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
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

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Bytes that arrive in pieces. A list of pieces of one byte each would take a hundred times the memory. */
export class GrowingBytes {
  #bytes = new Uint8Array();
  size = 0;

  /** Copies a piece to the end. */
  append(piece: Uint8Array): void {
    const size = this.size + piece.length;
    if (size > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(size, 2 * this.#bytes.length));
      grown.set(this.view());
      this.#bytes = grown;
    }
    this.#bytes.set(piece, this.size);
    this.size = size;
  }

  /** Returns the bytes so far, without a copy. */
  view(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.size);
  }
}
