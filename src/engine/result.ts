import { countBytes, cutToBytes } from "../base/bytes.ts";

/** Maximum length of a final text in UTF-8. The log has the whole text. */
export const RESULT_MAX_BYTES = 200 * 1024;

/** Prepares a final text for storage: without NUL, and cut at the limit with a line that reports the cut. */
export function cutResult(text: string): string {
  return limitText(text, countBytes(text.trimEnd()));
}

/** Decodes and prepares the start of a final text of `bytes` bytes, see cutResult(). */
export function decodeResult(start: Uint8Array, bytes: number): string {
  const text = new TextDecoder().decode(start);
  // Drops a character that was cut in the middle.
  return limitText(bytes > start.length ? text.replace(/\ufffd+$/, "") : text, bytes);
}

// With the line of the cut, the text has the maximum length: the service leaves the text of a runner as it is.
function limitText(text: string, bytes: number): string {
  const safe = text.replaceAll("\0", "\ufffd").trimEnd();
  if (bytes <= RESULT_MAX_BYTES && countBytes(safe) <= RESULT_MAX_BYTES) return safe;
  const line = `\n[cut: ${bytes} bytes in all, the log has more]`;
  return cutToBytes(safe, RESULT_MAX_BYTES - line.length) + line;
}
