/** When a limit ends: at a time (Unix ms), after a time span, or at the next time of a cron expression. */
export type Reset = { at: number } | { inMs: number } | { cron: string };

const UNIT_MS: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Parses the time in a message about a limit, such as "try again at 2:38 PM" or "retry in 41.5s". Returns null without one. */
export function parseReset(words: string): Reset | null {
  return parseClock(words) ?? parseSpan(words);
}

const DAY = String.raw`(?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,? (?:\d{4},? )?(?:at )?)?`;
const CLOCK = new RegExp(String.raw`(?:again|resets?)(?: at)? ${DAY}(\d{1,2})(?::(\d{2}))? ?([ap]m)\b`, "i");

function parseClock(words: string): Reset | null {
  const found = CLOCK.exec(words);
  if (found === null) return null;
  const [, month = "", date = "", hour, minute = "0", half = ""] = found;
  const hours = Number(hour) % 12 + (half.toLowerCase() === "pm" ? 12 : 0);
  const index = MONTHS.indexOf(month.toLowerCase());
  return { cron: `${Number(minute)} ${hours} ${index === -1 ? "* *" : `${Number(date)} ${index + 1}`} *` };
}

const UNIT = "days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|d|h|m|s";
const SPAN = new RegExp(
  String
    .raw`(?:again in|retry in|retry after|resets? (?:after|in)|retryDelay\W+)\s*((?:\d+(?:\.\d+)?\s*(?:${UNIT})(?![a-z])[\s,]*(?:and\s+)?)+)`,
  "i",
);

function parseSpan(words: string): Reset | null {
  // "1m26.4s" has no space after the unit.
  const found = SPAN.exec(words.replace(/(\d[dhm])(?=\d)/g, "$1 "));
  if (found === null) return null;
  let ms = 0;
  for (const [, count, unit = ""] of (found[1] ?? "").matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    const name = unit.toLowerCase();
    ms += Number(count) * (UNIT_MS[name === "ms" ? name : name.charAt(0)] ?? 0);
  }
  return { inMs: Math.ceil(ms) };
}
