import { findZone } from "./reset_zone.ts";

/**
 * When a limit ends: at a time (Unix ms), after a time span, or at the next time of a cron expression. The expression is in the time zone
 * `zone`, or without one in the time zone of the engine's process.
 */
export type Reset = { at: number } | { inMs: number } | ClockReset;

export interface ClockReset {
  cron: string;
  zone?: string | undefined;
  /** Days from today until the day of the reset. */
  inDays?: number | undefined;
  /** The year, if the provider named one. */
  year?: number | undefined;
  /** The second of the minute. Without one, the limit ends after the whole minute. */
  seconds?: number | undefined;
}

const WORDS_MAX_CHARACTERS = 20_000;
const TAIL_MAX_CHARACTERS = 200;
// In a provider's message, one of these words comes before the time.
const TRIGGER =
  /again|back|resets?|retry|refresh(?:es)?|renews?|available|until|try|wait|limit reached(?=\|)/gi;
const FILLER_WORDS =
  "at|on|in|after|until|till|by|from|for|within|is|be|are|your|the|this|around|about|approximately|roughly|next|another|time|timestamp|" +
  "daily|weekly|monthly|every day|again|available|limits?|quota|usage|will|date|delay|later than";
const FILLER = new RegExp(String.raw`^(?:[\s:="'(\[{|·•,~_–—-]|\\|(?:${FILLER_WORDS})(?![a-z]))*`, "i");

/** Parses the time in a message about a limit, such as "try again at 2:38 PM" or "retry in 41.5s". Returns null without one. */
export function parseReset(words: string): Reset | null {
  // Splits keys of JSON, such as retryAfterSeconds, into words.
  const text = words.slice(0, WORDS_MAX_CHARACTERS)
    .replace(/(retry|resets?)(After|At|In|Time|Delay)(?:(Ms|Seconds)|\b)/gi, "$1 $2 $3");
  for (const { index, 0: trigger } of text.matchAll(TRIGGER)) {
    const tail = text.slice(index + trigger.length, index + trigger.length + TAIL_MAX_CHARACTERS);
    const filler = FILLER.exec(tail)?.[0] ?? "";
    const rest = tail.slice(filler.length);
    const reset = parseEpoch(rest) ?? parseDuration(filler, rest) ?? parseMoment(rest) ??
      parseSpan(trigger, filler, rest) ?? parseNumber(trigger, filler, rest);
    if (reset !== null) return reset;
  }
  return null;
}

function parseEpoch(text: string): Reset | null {
  const [, seconds, ms] = /^(?:(\d{10})(?:\.\d+)?|(\d{13}))(?!\d)/.exec(text) ?? [];
  if (seconds !== undefined) return { at: Number(seconds) * 1_000 };
  return ms === undefined ? null : { at: Number(ms) };
}

interface Moment {
  clock?: { hour: number; minute: number; seconds: number | undefined };
  date?: { month: number; day: number; year: number | undefined };
  weekday?: number;
  inDays?: number;
  zone?: string;
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MONTH =
  "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\b\\.?";
const WEEKDAY =
  "(sun(?:day)?|mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?)\\b\\.?";
const YEAR = String.raw`(?:,? (\d{4})(?![\d:]))?`;

/** The forms of a day and a clock time. Each adds its part, or refuses a wrong one. */
const FORMS: [RegExp, (moment: Moment, ...parts: (string | undefined)[]) => boolean][] = [
  [
    /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:T|(?!\d))/i,
    (moment, year, month, day) => setDate(moment, month, day, year),
  ],
  [
    new RegExp(String.raw`^${MONTH} ?(\d{1,2})(?:st|nd|rd|th)?(?![\d:])${YEAR}`, "i"),
    (moment, month, day, year) => setDate(moment, findMonth(month), day, year),
  ],
  [
    new RegExp(
      String.raw`^(\d{1,2})(?:st|nd|rd|th)?(?: of)?[ -]${MONTH}${YEAR.replace(",? ", ",?[ -]")}`,
      "i",
    ),
    (moment, day, month, year) => setDate(moment, findMonth(month), day, year),
  ],
  [new RegExp(`^${WEEKDAY}`, "i"), (moment, name = "") => {
    moment.weekday ??= WEEKDAYS.indexOf(name.slice(0, 3).toLowerCase());
    return true;
  }],
  [/^(today|tonight|tomorrow)\b/i, (moment, name = "") => {
    moment.inDays ??= name.toLowerCase() === "tomorrow" ? 1 : 0;
    return true;
  }],
  [
    /^(\d{1,2})(?:[:.](\d{2})(?:[:.](\d{2}))?)?\s?([ap])\.?\s?m\b\.?/i,
    (moment, hour, minute, seconds, half = "") =>
      Number(hour) <= 12 &&
      setClock(moment, Number(hour) % 12 + (half.toLowerCase() === "p" ? 12 : 0), minute, seconds),
  ],
  [
    /^(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?![\d:])/,
    (moment, hour, minute, seconds) =>
      setClock(moment, Number(hour) === 24 ? 0 : Number(hour), minute, seconds),
  ],
  [/^(noon|midday|midnight)\b/i, (moment, name = "") => setClock(moment, name === "midnight" ? 0 : 12, "0")],
];
const CONNECTOR = /^(?:[\s,;:)\]"'·•|]|[–—-](?=\s)|(?:at|on|of|the|around)(?![a-z]))+/i;

function setDate(moment: Moment, month = "", day = "", year?: string): boolean {
  const date = {
    month: Number(month),
    day: Number(day),
    year: year === undefined ? undefined : Number(year),
  };
  const isDate = date.month >= 1 && date.month <= 12 && date.day >= 1 && date.day <= 31;
  if (isDate) moment.date ??= date;
  return isDate;
}

function findMonth(name = ""): string {
  return String(MONTHS.indexOf(name.slice(0, 3).toLowerCase()) + 1);
}

function setClock(moment: Moment, hour: number, minute = "0", seconds?: string): boolean {
  const clock = {
    hour,
    minute: Number(minute),
    seconds: seconds === undefined ? undefined : Number(seconds),
  };
  const isClock = hour <= 23 && clock.minute <= 59 && (clock.seconds ?? 0) <= 60;
  if (isClock) moment.clock ??= clock;
  return isClock;
}

function parseMoment(text: string): Reset | null {
  const moment: Moment = {};
  let rest = text;
  for (let length = readPart(moment, rest); length > 0; length = readPart(moment, rest)) {
    rest = rest.slice(length);
  }
  const { clock, date, weekday, inDays, zone } = moment;
  // "Today" alone is no time.
  if (clock === undefined && date === undefined && weekday === undefined && !inDays) return null;
  const { hour, minute, seconds } = clock ?? { hour: 0, minute: 0, seconds: 0 };
  const day = date === undefined ? `* * ${weekday ?? "*"}` : `${date.day} ${date.month} *`;
  return {
    cron: `${minute} ${hour} ${day}`,
    ...(zone === undefined ? {} : { zone }),
    ...(inDays === undefined ? {} : { inDays }),
    ...(date?.year === undefined ? {} : { year: date.year }),
    ...(seconds === undefined ? {} : { seconds }),
  };
}

/** Reads the next part of a moment, and returns its length; 0 without one. */
function readPart(moment: Moment, text: string): number {
  if (moment.zone === undefined && Object.keys(moment).length > 0) {
    const found = findZone(text);
    if (found !== null) {
      moment.zone = found.zone;
      return found.length;
    }
  }
  const lead = Object.keys(moment).length === 0 ? 0 : CONNECTOR.exec(text)?.[0].length ?? 0;
  const rest = text.slice(lead);
  for (const [form, add] of FORMS) {
    const found = form.exec(rest);
    if (found !== null && add(moment, ...found.slice(1))) return lead + found[0].length;
  }
  return 0;
}

// "in 01:23:45" is a time span.
function parseDuration(filler: string, text: string): Reset | null {
  const found = /^(\d{1,3}):(\d{2}):(\d{2})(?![\d:])/.exec(text);
  if (found === null || !/\bin\s+$/i.test(filler)) return null;
  const [hours = 0, minutes = 0, seconds = 0] = found.slice(1).map(Number);
  return { inMs: ((hours * 60 + minutes) * 60 + seconds) * 1_000 };
}

const UNIT_MS: Record<string, number> = {
  ...{ w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 },
};
const UNIT = "weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|milliseconds?|ms|[wdhms]";
const COUNTS = [
  "half an",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
];
const COUNT = String.raw`\d+(?:\.\d+)?\s*|(?:an?|${COUNTS.join("|")})\s+`;
const SPAN = new RegExp(String.raw`^(?:(?:${COUNT})(?:${UNIT})(?![a-z])[\s,]*(?:and\s+)?)+`, "i");
const PART = new RegExp(String.raw`(${COUNT})(${UNIT})(?![a-z])`, "gi");

function parseSpan(trigger: string, filler: string, text: string): Reset | null {
  if (!/\b(?:in|after|for|within|another)\b|[:=_]/i.test(filler) && !/wait/i.test(trigger)) return null;
  // "1m26.4s" has no space after the unit.
  const [span] = SPAN.exec(text.replace(/(\d[wdhm])(?=\d)/gi, "$1 ")) ?? [];
  if (span === undefined) return null;
  let ms = 0;
  for (const [, count = "", unit = ""] of span.matchAll(PART)) ms += readCount(count) * findUnitMs(unit);
  return { inMs: Math.ceil(ms) };
}

function readCount(text: string): number {
  const word = text.trim().toLowerCase();
  const index = COUNTS.indexOf(word);
  if (index === 0) return 0.5;
  return index > 0 ? index : /^an?$/.test(word) ? 1 : Number(word);
}

function findUnitMs(unit: string): number {
  const name = unit.toLowerCase();
  return UNIT_MS[/^(?:ms|milli)/.test(name) ? "ms" : name.charAt(0)] ?? 0;
}

// "Retry-After: 120" and "resets_in_seconds":120 count seconds.
function parseNumber(trigger: string, filler: string, text: string): Reset | null {
  const [, unit = "s", count] =
    /^(?:(ms|milliseconds|seconds)["'\\]*\s*[:=]\s*["'\\]*)?(\d{1,9}(?:\.\d+)?)(?![\d.:/-]*[\d:])(?!\s*[a-z%])/i
      .exec(text) ?? [];
  if (count === undefined || !/retry|reset/i.test(trigger) || !/\b(?:in|after)\b|[:=_]/i.test(filler)) {
    return null;
  }
  return { inMs: Math.ceil(Number(count) * findUnitMs(unit)) };
}
