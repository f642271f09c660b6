const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Formats a duration in the two largest units: `40 ms`, `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function formatDuration(ms: number): string {
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

/** Formats a wait, with every millisecond of a short one: `40 ms`, `1.2 s`. */
export function formatWait(ms: number): string {
  return ms < SECOND ? `${Math.round(ms)} ms` : formatDuration(ms);
}

/** Formats the time until a point in the future, however far away: `in 3 h`, `in 40 d`. */
export function formatUntil(at: number, now: number): string {
  const ms = at - now;
  return ms > 7 * DAY ? `in ${Math.round(ms / DAY)} d` : formatAgo(at, now);
}

/** Formats a time relative to `now`: `just now`, `5 min ago`, `in 3 h`, `12 Mar`. */
export function formatAgo(at: number, now: number): string {
  const ms = now - at;
  const size = Math.abs(ms);
  if (size < 15 * SECOND) return "just now";
  if (size > 7 * DAY) return formatDay(at, now);
  // Rounded up, a start would be longer ago than its run took.
  const count = (unit: number) => ms > 0 ? Math.floor(size / unit) : Math.round(size / unit);
  const text = size < MINUTE
    ? `${count(SECOND)} s`
    : size < HOUR
    ? `${count(MINUTE)} min`
    : size < DAY
    ? `${count(HOUR)} h`
    : `${count(DAY)} d`;
  return ms > 0 ? `${text} ago` : `in ${text}`;
}

export const FULL_DATE = { weekday: "short", day: "numeric", month: "short", year: "numeric" } as const;
const PLANNED = { ...FULL_DATE, hour: "2-digit", minute: "2-digit", timeZoneName: "short" } as const;

/** Formats a time in full, in the browser's zone. */
export const formatTime = createTimeFormat({ ...PLANNED, second: "2-digit" });

/** Formats a planned time to the minute, in the browser's zone. */
export const formatPlannedTime = createTimeFormat(PLANNED);

export const formatClock = createTimeFormat({ hour: "2-digit", minute: "2-digit" });

export const formatClockSeconds = createTimeFormat(
  { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  "en-GB",
);

const dayOfYear = createTimeFormat({ day: "numeric", month: "short" });
const dayInFull = createTimeFormat({ day: "numeric", month: "short", year: "numeric" });

/** Formats the day of a time. Adds the year if it is not the current one. */
export function formatDay(at: number, now: number): string {
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return sameYear ? dayOfYear(at) : dayInFull(at);
}

/** Creates a time formatter. Creating an `Intl` format is a hundred times slower than using it, so it is created once. */
export function createTimeFormat(
  options: Intl.DateTimeFormatOptions,
  locale?: string,
): (at: number) => string {
  let format: Intl.DateTimeFormat | undefined;
  return (at) => {
    const date = new Date(at);
    // A log line can start with text that looks like a time but is none.
    if (Number.isNaN(date.getTime())) return String(date);
    format ??= new Intl.DateTimeFormat(locale, options);
    return format.format(date);
  };
}

/** Formats a size in bytes: `340 B`, `12 KB`, `1.4 MB`. */
export function formatSize(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1_000 && unit < units.length - 1) {
    size /= 1_000;
    unit++;
  }
  return `${unit === 0 || size >= 10 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** Formats the total of a list, such as `10000+`, with separators: `10,000+`. */
export function formatTotal(total: string): string {
  return total.replaceAll(/\d(?=(\d{3})+(?!\d))/g, "$&,");
}

/** Formats a count: `950`, `12.4k`, `3.1M`. */
export function formatCount(count: number): string {
  if (count < 10_000) return count.toLocaleString("en");
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatCost(usd: number): string {
  return usd !== 0 && usd < 0.01 ? "< $0.01" : `$${usd.toFixed(2)}`;
}

export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// The service gives this name to a new conversation.
const UNNAMED = "New session";

export function formatConversationName(name: string): string {
  return name === UNNAMED ? "New conversation" : name;
}

export function isUnnamed(name: string | undefined): boolean {
  return name === UNNAMED;
}

/** Returns the name of a platform: `local` is this console. */
export function formatPlatform(name: string): string {
  return name === "local" ? "console" : name;
}

/** Returns the name of a user or operator without its kind: `admin` for `user:admin`. `bee` is the coordinator. */
export function formatActor(actor: string): string {
  return actor === "bee" ? "the coordinator" : actor.replace(/^(operator|user):/, "");
}

/** Returns the first line of a text, cut to a maximum. */
export function takeFirstLine(text: string, charactersMax = 200): string {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  return line.length > charactersMax ? `${line.slice(0, charactersMax)}…` : line;
}
