/** The maximum length of a final text; the log has the rest. */
export const RESULT_MAX_BYTES = 200 * 1024;

/** A final text as it is stored: without NUL, and cut at the limit with a line that says so. */
export function cutResult(text: string): string {
  const bytes = new TextEncoder().encode(text.trimEnd());
  return decodeResult(bytes.subarray(0, RESULT_MAX_BYTES), bytes.length);
}

/** As cutResult(), for a text of which only the start was kept; `bytes` is the length of all of it. */
export function decodeResult(start: Uint8Array, bytes: number): string {
  const text = new TextDecoder().decode(start).replaceAll("\0", "\ufffd").trimEnd();
  if (bytes <= start.length) return text;
  // Leaves out a character that was cut in the middle.
  return `${text.replace(/\ufffd+$/, "")}\n[cut: ${bytes} bytes in all, the log has more]`;
}
