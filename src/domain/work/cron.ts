import { Cron } from "croner";
import { memoize } from "../../base/memoize.ts";
import type { PreviewedTime } from "./schedule.ts";

const MINUTE_MS = 60_000;

interface Field {
  name: string;
  min: number;
  max: number;
  names?: string[];
}

const FIELDS: Field[] = [
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  {
    name: "month",
    min: 1,
    max: 12,
    names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
  },
  { name: "day of week", min: 0, max: 7, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/**
 * Returns why a text is not a cron expression that can fire, or null for a valid one (contract 3, Task). Accepts exactly five
 * fields of `*`, numbers, names, ranges, lists and steps, and refuses croner's extensions.
 */
export function findCronFault(expression: string, timeZone: string, after: number): string | null {
  const parts = expression.trim().split(/\s+/);
  if (expression.trim() === "") {
    return "the cron expression is empty; five fields are needed, such as 0 9 * * 1-5";
  }
  if (expression.trim().startsWith("@")) {
    return `nicknames such as ${parts[0]} are not accepted; write five fields`;
  }
  if (parts.length !== FIELDS.length) {
    return `a cron expression has five fields (minute hour day month weekday), this one has ${parts.length}`;
  }
  for (const [index, field] of FIELDS.entries()) {
    const fault = findFieldFault(parts[index] ?? "", field);
    if (fault !== null) return `${field.name}: ${fault}`;
  }
  try {
    if (findNextOccurrence(expression, timeZone, after) === null) {
      return "the expression never fires: no date matches all five fields";
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return null;
}

function findFieldFault(text: string, field: Field): string | null {
  for (const item of text.split(",")) {
    const match = /^(?:(\*)|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:\/([0-9]+))?$/i.exec(item);
    if (match === null) return `cannot read ${JSON.stringify(item)}`;
    const [, star, from, to, step] = match;
    if (step !== undefined && star === undefined && to === undefined) {
      return `a step needs a range or *, such as */${step} or ${from}-${field.max}/${step}`;
    }
    if (step !== undefined && (Number(step) < 1 || Number(step) > field.max + 1 - field.min)) {
      return `the step ${step} is outside 1-${field.max + 1 - field.min}`;
    }
    const bounds: number[] = [];
    for (const bound of [from, to]) {
      if (bound === undefined) continue;
      const value = parseValue(bound, field);
      if (value === null) {
        return `${bound} is not ${field.min}-${field.max}${field.names ? " or a name" : ""}`;
      }
      bounds.push(value);
    }
    const [first = 0, last = first] = bounds;
    if (last < first) return `the range ${from}-${to} runs backwards`;
  }
  return null;
}

function parseValue(text: string, field: Field): number | null {
  const named = field.names?.indexOf(text.toLowerCase()) ?? -1;
  if (named !== -1) return named + (field.min === 1 ? 1 : 0);
  if (!/^\d{1,2}$/.test(text)) return null;
  const value = Number(text);
  return value < field.min || value > field.max ? null : value;
}

/** Returns the first time strictly after `after` (Unix ms) at which a valid expression fires, or null. */
export function findNextOccurrence(expression: string, timeZone: string, after: number): number | null {
  return findOccurrenceAfter(JSON.stringify([getMinute(after), timeZone, expression])).at;
}

/**
 * Returns the first `count` times strictly after `after`, or fewer when the expression ends. Parses the expression once and
 * caches nothing, so that previews do not evict the answers for schedules.
 */
export function listNextOccurrences(
  expression: string,
  timeZone: string,
  after: number,
  count: number,
): number[] {
  const schedule = parseSchedule(expression, timeZone);
  const times: number[] = [];
  while (times.length < count) {
    const at = schedule(getMinute(times.at(-1) ?? after) * MINUTE_MS);
    if (at === null) break;
    times.push(at);
  }
  return times;
}

// Occurrences are whole minutes, so every moment of a minute has the same next one.
function getMinute(at: number): number {
  return Math.floor(at / MINUTE_MS);
}

const OCCURRENCES_KEPT = 20_000;

// Parsing takes a millisecond, and a fleet asks for each schedule several times.
const findOccurrenceAfter = memoize(OCCURRENCES_KEPT, (question) => {
  const [minute, timeZone, expression] = JSON.parse(question) as [number, string, string];
  return { at: parseSchedule(expression, timeZone)(minute * MINUTE_MS) };
});

/** The missed occurrences of a schedule, in Unix ms. */
export interface MissedOccurrences {
  latest: number;
  /** Counted up to MISSED_COUNT_MAX. */
  count: number;
}

/**
 * Limit of the number of missed occurrences that are counted. A clock that was wrong by decades must not cost minutes (reliability CRN-3).
 */
export const MISSED_COUNT_MAX = 500;

/** Returns the occurrences from `from` to `now` inclusive, or null for none. The work is bounded for any gap. */
export function findMissedOccurrences(
  expression: string,
  timeZone: string,
  from: number,
  now: number,
): MissedOccurrences | null {
  const schedule = parseSchedule(expression, timeZone);
  const first = schedule(from - 1);
  if (first === null || first > now) return null;
  let count = 1;
  let latest = first;
  while (count < MISSED_COUNT_MAX) {
    const later = schedule(latest);
    if (later === null || later > now) return { latest, count };
    latest = later;
    count++;
  }
  return { latest: findLatest(schedule, latest, now), count };
}

// Binary search: before the latest occurrence another one follows until now, after it none.
function findLatest(schedule: Schedule, known: number, now: number): number {
  let low = known;
  let high = now;
  while (high - low > MINUTE_MS) {
    const middle = low + Math.floor((high - low) / 2);
    const later = schedule(middle);
    if (later !== null && later <= now) low = later;
    else high = middle;
  }
  const last = schedule(low);
  return last !== null && last <= now ? last : low;
}

/** Returns the first time of a schedule strictly after a time, or null. */
type Schedule = (after: number) => number | null;

/**
 * Parses a valid expression. If a clock change skips a fixed time, the schedule fires at the first moment after the gap. If the clock shows
 * a fixed time twice, the schedule fires the first time only. Other times follow the clock (contract-3 20.2).
 */
function parseSchedule(expression: string, timeZone: string): Schedule {
  if (!isFixedTime(expression)) {
    const cron = parseCron(expression, timeZone);
    return (after) => findNext(cron, after);
  }
  // croner omits a fixed time when its gap ends on another day, as in Nuuk each March.
  const cron = parseCron(expression, "UTC");
  const clock = createZoneClock(timeZone);
  return (after) => {
    let local = findNext(cron, after + clock(after));
    while (local !== null && findInstant(clock, local) <= after) local = findNext(cron, local);
    return local === null ? null : findInstant(clock, local);
  };
}

/** Returns whether minute and hour have neither `*` nor a step. Such a fixed time runs once on each of its days (contract-3 20.2). */
function isFixedTime(expression: string): boolean {
  return !/[*/]/.test(expression.trim().split(/\s+/).slice(0, 2).join(" "));
}

function parseCron(expression: string, timeZone: string): Cron {
  return new Cron(expression.trim(), { mode: "5-part", paused: true, timezone: timeZone });
}

function findNext(cron: Cron, after: number): number | null {
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}

// More than any zone's offset from UTC.
const OFFSET_SPAN_MS = 15 * 60 * MINUTE_MS;

/** Returns the first time at which a zone's clock shows a local time, or the end of the gap that skips it. */
function findInstant(clock: ZoneClock, local: number): number {
  let [early, late] = [local - OFFSET_SPAN_MS, local + OFFSET_SPAN_MS];
  const [before, after] = [clock(early), clock(late)];
  if (before === after) return local - before;
  while (late - early > MINUTE_MS) {
    const middle = early + Math.floor((late - early) / 2 / MINUTE_MS) * MINUTE_MS;
    if (clock(middle) === before) early = middle;
    else late = middle;
  }
  return local - before < late ? local - before : Math.max(late, local - after);
}

// No clock is changed by more than this, and no clock is changed twice within this time.
const CHANGE_MAX_MS = 3 * 60 * MINUTE_MS;

// In no zone, the clock is set back and forward again within a week.
const STEADY_MS = 7 * 24 * 60 * MINUTE_MS;

/**
 * Returns up to `count` next times of a valid cron expression after `after`, with notes on daylight saving time (contract
 * 15).
 */
export function previewCron(
  expression: string,
  timeZone: string,
  after: number,
  count: number,
): PreviewedTime[] {
  const clock = createZoneClock(timeZone);
  const times = listNextOccurrences(expression, timeZone, after, count);
  let named: Cron | undefined;
  const preview: Preview = {
    clock,
    isFixed: isFixedTime(expression),
    names: (from, to) => (findNext(named ??= parseCron(expression, "UTC"), from - MINUTE_MS) ?? to) < to,
  };
  return times.map((at, index) => ({
    at,
    local: formatLocal(clock, at),
    note: formatNote(preview, times[index - 1] ?? after, at),
  }));
}

/** Offset of a zone's clock from UTC at a time, in ms. */
type ZoneClock = (at: number) => number;

interface Preview {
  clock: ZoneClock;
  isFixed: boolean;
  /** Returns whether the expression names a local time in the range from `from` to before `to`, even if the clock skips that time. */
  names: (from: number, to: number) => boolean;
}

function formatNote({ clock, isFixed, names }: Preview, before: number, at: number): string {
  const local = at + clock(at);
  const skippedFrom = at + clock(at - MINUTE_MS);
  if (isFixed && skippedFrom < local && names(skippedFrom, local)) {
    return names(local, local + MINUTE_MS)
      ? "on this day the clock skips other times of the schedule: it fires once for them and this time"
      : "moved: on this day the clock skips the hour in which the schedule would fire";
  }
  // The clock goes back soon and shows this time again.
  const back = clock(at) - clock(at + CHANGE_MAX_MS);
  if (back > 0 && clock(at + back) === clock(at) - back) {
    return `on this day the clock shows this time twice: the schedule fires ${
      isFixed ? "the first time" : "both times"
    }`;
  }
  return formatChange({ clock, isFixed, names }, before, at);
}

function formatChange({ clock, isFixed, names }: Preview, before: number, at: number): string {
  const change = (clock(at) - clock(before)) / MINUTE_MS;
  const mayHaveSkipped = !isFixed && (change > 0 || at - before > STEADY_MS);
  const left = mayHaveSkipped &&
      names(before - before % MINUTE_MS + clock(before) + MINUTE_MS, at + clock(at))
    ? "skipped times of the schedule, which are left out"
    : "";
  const moved = change === 0 ? "" : `went ${change > 0 ? "forward" : "back"} by ${Math.abs(change)} minutes`;
  if (moved !== "" || left !== "") {
    return `since the previous time, the clock ${
      [moved, left].filter((words) => words !== "").join(" and ")
    }`;
  }
  const ago = clock(at - CHANGE_MAX_MS) - clock(at);
  return !isFixed && ago > 0 && clock(at - ago) === clock(at) + ago
    ? "on this day the clock shows this time twice: the schedule fires both times"
    : "";
}

/** Creates a function that returns the offset of a time zone from UTC. */
export function createZoneClock(timeZone: string): ZoneClock {
  const format = new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (at) => {
    const parts = Object.fromEntries(
      format.formatToParts(at).map(({ type, value }) => [type, Number(value)]),
    );
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000;
  };
}

function formatLocal(clock: ZoneClock, at: number): string {
  const offset = clock(at) / MINUTE_MS;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.abs(offset) / 60)}:${two(Math.abs(offset) % 60)}`;
  return new Date(at + offset * MINUTE_MS).toISOString().slice(0, 16) + zone;
}
