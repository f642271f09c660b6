import { fitsClock, nextOccurrences } from "./cron.ts";
import type { PreviewedTime } from "./schedule.ts";

const MINUTE_MS = 60_000;
// No clock changes by more, and none changes twice in so short a time.
const CHANGE_MAX_MS = 3 * 60 * MINUTE_MS;

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
  const clock = createClock(timeZone);
  // An extra time: a note depends on the following time, too.
  const times = nextOccurrences(expression, timeZone, after, count + 1);
  return times.slice(0, count).map((at, index) => ({
    at,
    local: formatLocal(clock, at),
    note: formatNote({
      expression,
      clock,
      at,
      before: times[index - 1] ?? after,
      behind: times[index + 1] ?? Infinity,
    }),
  }));
}

/** Offset of a zone's clock from UTC at a time, in ms. */
type ZoneClock = (at: number) => number;

/** A time with its neighbors. */
interface PreviewInput {
  expression: string;
  clock: ZoneClock;
  at: number;
  before: number;
  behind: number;
}

function formatNote({ expression, clock, at, before, behind }: PreviewInput): string {
  const local = new Date(at + clock(at));
  if (!fitsClock(expression, local.getUTCHours(), local.getUTCMinutes())) {
    return "moved: on this day the clock skips the hour in which the schedule would fire";
  }
  // The clock goes back soon and shows this time again.
  const back = clock(at) - clock(at + CHANGE_MAX_MS);
  if (back > 0 && clock(at + back) === clock(at) - back) {
    return behind === at + back
      ? "on this day the clock shows this time twice: the schedule fires both times"
      : "on this day the clock shows this time twice: the schedule fires the first time";
  }
  const change = (clock(at) - clock(before)) / MINUTE_MS;
  if (change === 0) return "";
  return `since the previous time, the clock went ${change > 0 ? "forward" : "back"} by ${
    Math.abs(change)
  } minutes`;
}

function createClock(timeZone: string): ZoneClock {
  const format = new Intl.DateTimeFormat("en-u-hc-h23", {
    timeZone,
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
