export const LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000;

/** Parses a Retry-After into ms, a day at most. Returns null for a missing or unreadable one. */
export function parseRetryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS);
}

/** Parses a pause in seconds into ms, a day at most. Returns null for a missing or unreadable one. */
export function parsePauseSeconds(seconds: unknown): number | null {
  const isNamed = typeof seconds === "number" || typeof seconds === "string" && seconds.trim() !== "";
  const ms = isNamed ? Number(seconds) * 1000 : NaN;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS);
}
