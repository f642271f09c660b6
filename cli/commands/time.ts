import { usageError } from "../terminal/exit.ts";

const UNIT_MS: [names: RegExp, ms: number][] = [
  [/^(ms|milliseconds?)$/, 1],
  [/^(s|secs?|seconds?)$/, 1_000],
  [/^(m|mins?|minutes?)$/, 60_000],
  [/^(h|hours?)$/, 3_600_000],
  [/^(d|days?)$/, 86_400_000],
  [/^(w|weeks?)$/, 604_800_000],
];
// Times are int64 in the API (interface 4.2). Larger values mean the latest possible time.
const TIME_MAX_MS = 8_640_000_000_000_000;
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i;

/**
 * Parses a time: Unix ms, ISO 8601 (local without a zone), `now`, or relative, such as `-1h`, `+10m`, `1h30m ago`,
 * `in 2 days` (contract 8.11). Throws a usage error naming the flag.
 */
export function parseTime(text: string, flag: string, now = Date.now()): number {
  // A list of what happened since a time can only mean the past: `--since 2w` is `--since -2w`.
  const isPast = flag === "--since" || flag.endsWith("-from") || flag.endsWith("-to");
  const given = text.trim();
  const words = isPast && /^\d+\s*[a-z]/i.test(given) && !/ago$/i.test(given) ? `-${given}` : given;
  const at = /^-?\d{1,19}$/.test(words)
    ? Number(words)
    : ISO.test(words)
    ? parseIso(words)
    : parseRelative(words, now);
  if (at === null || Number.isNaN(at)) {
    throw usageError(
      `${flag}: ${
        JSON.stringify(text)
      } is not a time such as -1h, +10m, "1 hour ago", 2026-11-21T14:20 or Unix ms`,
    );
  }
  return Math.min(at, TIME_MAX_MS);
}

// Date.parse() reads a date without a time as UTC; people mean local midnight.
function parseIso(words: string): number {
  return Date.parse(words.length === 10 ? `${words}T00:00` : words.replace(" ", "T"));
}

function parseRelative(words: string, now: number): number | null {
  if (words.toLowerCase() === "now") return now;
  const [, sign, amount = "", ago] = /^(\+|-|in\s+)?\s*(.+?)(\s+ago)?$/i.exec(words) ?? [];
  // A span without a sign or a word such as "ago" could be in the past or in the future.
  if ((sign === undefined) === (ago === undefined)) return null;
  const parts = [...amount.matchAll(/(\d{1,9})\s*([a-z]+)\s*/gi)];
  if (parts.map(([part]) => part).join("") !== amount || parts.length === 0) return null;
  let ms = 0;
  for (const [, count, unit = ""] of parts) {
    const size = UNIT_MS.find(([names]) => names.test(unit.toLowerCase()))?.[1];
    if (size === undefined) return null;
    ms += Number(count) * size;
  }
  return sign === "-" || ago !== undefined ? now - ms : now + ms;
}
