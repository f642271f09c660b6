import { GrowingBytes } from "../../base/bytes.ts";

const NEWLINE = 10;
const HEAD_BYTES = 200;
const decoder = new TextDecoder();

/** Splits a stream of bytes into lines. Reports only the start and size of a line beyond the limit. */
export class LineSplitter {
  readonly #maxBytes: number;
  readonly #onLine: (line: string) => void;
  readonly #onLong: (head: string, bytes: number) => void;
  #line = new GrowingBytes();
  #size = 0;

  constructor(
    maxBytes: number,
    onLine: (line: string) => void,
    onLong: (head: string, bytes: number) => void,
  ) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
    this.#onLong = onLong;
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) {
      const end = chunk.indexOf(NEWLINE, at);
      this.#hold(chunk.subarray(at, end === -1 ? chunk.length : end));
      if (end === -1) return;
      this.#emit();
      at = end + 1;
    }
  }

  /** Ends the stream. The remaining bytes are the last line. */
  end(): void {
    if (this.#size > 0) this.#emit();
  }

  #hold(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#size += part.length;
    if (this.#size <= this.#maxBytes) return this.#line.append(part);
    // If a line is too long, keeps only its start.
    const kept = this.#line.view().subarray(0, HEAD_BYTES);
    if (kept.length === HEAD_BYTES && this.#line.size === HEAD_BYTES) return;
    this.#line = new GrowingBytes();
    this.#line.append(kept);
    if (kept.length === 0) this.#line.append(part.subarray(0, HEAD_BYTES));
  }

  #emit(): void {
    const size = this.#size;
    const text = decoder.decode(this.#line.view());
    this.#line = new GrowingBytes();
    this.#size = 0;
    if (size > this.#maxBytes) this.#onLong(text.slice(0, HEAD_BYTES), size);
    else this.#onLine(text.endsWith("\r") ? text.slice(0, -1) : text);
  }
}
