const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something took, in the two largest units: `40 ms`, `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function durationText(ms: number): string {
  if (ms < SECOND / 10) return `${Math.max(0, Math.ceil(ms))} ms`;
  if (ms < 10 * SECOND) return `${(Math.max(0, ms) / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  const [large, small, first, second] = ms < HOUR
    ? ["min", "s", MINUTE, SECOND] as const
    : ms < DAY
    ? ["h", "min", HOUR, MINUTE] as const
    : ["d", "h", DAY, HOUR] as const;
  const rest = Math.floor(ms % first / second);
  return `${Math.floor(ms / first)} ${large}${rest === 0 ? "" : ` ${rest} ${small}`}`;
}

/** How long something waited, also when that was short: `40 ms`, `1.2 s`. */
export function waitText(ms: number): string {
  return ms < SECOND ? `${Math.round(ms)} ms` : durationText(ms);
}

/** How long it is until something, however far away: `in 3 h`, `in 40 d`. */
export function untilText(at: number, now: number): string {
  const ms = at - now;
  return ms > 7 * DAY ? `in ${Math.round(ms / DAY)} d` : agoText(at, now);
}

/** When something was or will be, seen from `now`: `just now`, `5 min ago`, `in 3 h`, `12 Mar`. */
export function agoText(at: number, now: number): string {
  const ms = now - at;
  const size = Math.abs(ms);
  if (size < 15 * SECOND) return "just now";
  if (size > 7 * DAY) return dayText(at, now);
  const text = size < MINUTE
    ? `${Math.round(size / SECOND)} s`
    : size < HOUR
    ? `${Math.round(size / MINUTE)} min`
    : size < DAY
    ? `${Math.round(size / HOUR)} h`
    : `${Math.round(size / DAY)} d`;
  return ms > 0 ? `${text} ago` : `in ${text}`;
}

/** A time in full, in the reader's own zone. */
export const timeText = timeFormat({
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

/** A time to come, in the reader's own zone: by the minute, which is how it was planned. */
export const plannedText = timeFormat({
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  timeZoneName: "short",
});

/** The hour and minute of a time. */
export const clockText = timeFormat({ hour: "2-digit", minute: "2-digit" });

/** Hour, minute and second of a time, as a log has them. */
export const stampText = timeFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit" }, "en-GB");

const dayOfYear = timeFormat({ day: "numeric", month: "short" });
const dayInFull = timeFormat({ day: "numeric", month: "short", year: "numeric" });

/** The day of a time, with its year when that is not this one. */
export function dayText(at: number, now: number): string {
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return sameYear ? dayOfYear(at) : dayInFull(at);
}

/** Times in words. The formatter is made once: to make one costs a hundred times what using it does, and then it is garbage. */
export function timeFormat(options: Intl.DateTimeFormatOptions, locale?: string): (at: number) => string {
  let format: Intl.DateTimeFormat | undefined;
  return (at) => {
    const date = new Date(at);
    // What is no time, such as a line of a log that only looks like one, is no error.
    if (Number.isNaN(date.getTime())) return String(date);
    format ??= new Intl.DateTimeFormat(locale, options);
    return format.format(date);
  };
}

/** A size in bytes: `340 B`, `12 KB`, `1.4 MB`. */
export function sizeText(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1_000 && unit < units.length - 1) {
    size /= 1_000;
    unit++;
  }
  return `${unit === 0 || size >= 10 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** A count: `950`, `12.4k`, `3.1M`. */
export function countText(count: number): string {
  if (count < 10_000) return count.toLocaleString("en");
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

/** An amount of money that is an estimate. */
export function costText(usd: number): string {
  return usd !== 0 && usd < 0.01 ? "< $0.01" : `$${usd.toFixed(2)}`;
}

/** One or many of something. */
export function manyText(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

// What the service calls one that nobody has named.
const UNNAMED = "New session";

/** What a conversation is called. */
export function conversationText(name: string): string {
  return name === UNNAMED ? "New conversation" : name;
}

/** Whether nobody has named a conversation yet. */
export function isUnnamed(name: string | undefined): boolean {
  return name === UNNAMED;
}

/** Where something was said: what the service calls local is this console. */
export function platformText(name: string): string {
  return name === "local" ? "console" : name;
}

/** Who did something, without the word for what they are: `admin` for `user:admin`. */
export function whoText(actor: string): string {
  return actor.replace(/^(operator|user):/, "");
}

/** The first line of a text, cut where it is long. */
export function firstLine(text: string, charactersMax = 200): string {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  return line.length > charactersMax ? `${line.slice(0, charactersMax)}…` : line;
}
