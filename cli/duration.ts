const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Ms of a duration such as `500ms 30s 5m 2h 7d`, or null when it is none. */
export function durationMs(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? null : Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 0);
}
