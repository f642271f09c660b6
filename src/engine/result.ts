/** Maximum length of a final text. The log has the whole text. */
export const RESULT_MAX_BYTES = 200 * 1024;

/** Prepares a final text for storage: without NUL, and cut at the limit with a line that reports the cut. */
export function cutResult(text: string): string {
  const bytes = new TextEncoder().encode(text.trimEnd());
  return decodeResult(bytes.subarray(0, RESULT_MAX_BYTES), bytes.length);
}

/** Decodes and prepares the start of a final text of `bytes` bytes, see cutResult(). */
export function decodeResult(start: Uint8Array, bytes: number): string {
  const text = new TextDecoder().decode(start).replaceAll("\0", "\ufffd").trimEnd();
  if (bytes <= start.length) return text;
  // Drops a character that was cut in the middle.
  return `${text.replace(/\ufffd+$/, "")}\n[cut: ${bytes} bytes in all, the log has more]`;
}
