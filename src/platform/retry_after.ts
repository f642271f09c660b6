/** The longest pause that somebody may ask for. */
export const LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000;

/** Ms that a Retry-After asks to wait, a day at most; null when there is none that can be read. */
export function retryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS);
}

/** Ms of the seconds that a platform asks to wait, a day at most; null when it names none that can be read. */
export function askedMs(seconds: unknown): number | null {
  const isNamed = typeof seconds === "number" || typeof seconds === "string" && seconds.trim() !== "";
  const ms = isNamed ? Number(seconds) * 1000 : NaN;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS);
}
