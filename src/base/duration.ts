const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Format of a duration: `300ms`, `30s`, `5m`, `2h`, `7d`, `2w`. */
export const DURATION = /^(\d{1,9})(ms|s|m|h|d|w)$/;

/** Parses a duration such as `300ms` into ms. Returns null for invalid text. */
export function parseDurationMs(text: string): number | null {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return unit === undefined ? null : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** Formats a duration for parseDurationMs(), in the largest unit that fits. */
export function formatDuration(ms: number): string {
  const larger = (["d", "h", "m", "s"] as const).find((name) =>
    ms >= UNIT_MS[name] && ms % UNIT_MS[name] === 0
  );
  const unit = larger ?? "ms";
  return `${ms / UNIT_MS[unit]}${unit}`;
}
