/** Most bytes of a final text that are kept; the log has the rest. */
export const RESULT_MAX_BYTES = 200 * 1024;

/** A final text as it is kept: without NUL, and cut with a line that says so. */
export function cutResult(text: string): string {
  const clean = text.replaceAll("\0", "\ufffd").trimEnd();
  const bytes = new TextEncoder().encode(clean);
  if (bytes.length <= RESULT_MAX_BYTES) return clean;
  // A character that was cut in the middle is left out.
  const kept = new TextDecoder().decode(bytes.subarray(0, RESULT_MAX_BYTES)).replace(/\ufffd+$/, "");
  return `${kept}\n[cut: ${bytes.length} bytes in all, the log has more]`;
}
