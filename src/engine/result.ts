/** Most bytes of a final text that are kept; the log has the rest. */
export const RESULT_MAX_BYTES = 200 * 1024;

/** A final text as it is kept: without NUL, and cut with a line that says so. */
export function cutResult(text: string): string {
  const bytes = new TextEncoder().encode(text.trimEnd());
  return keptResult(bytes.subarray(0, RESULT_MAX_BYTES), bytes.length);
}

/** As cutResult(), of a text of which only the start was held; `bytes` is how long all of it was. */
export function keptResult(start: Uint8Array, bytes: number): string {
  const text = new TextDecoder().decode(start).replaceAll("\0", "\ufffd").trimEnd();
  if (bytes <= start.length) return text;
  // A character that was cut in the middle is left out.
  return `${text.replace(/\ufffd+$/, "")}\n[cut: ${bytes} bytes in all, the log has more]`;
}
