import { fitsClock, nextOccurrences } from "./cron.ts";
import type { PreviewedTime } from "./schedule.ts";

const MINUTE_MS = 60_000;
// No clock is set by more, and none twice in so short a time.
const CHANGE_MAX_MS = 3 * 60 * MINUTE_MS;

/** The next times of a valid cron expression behind `after`, up to `count`, and what daylight saving does to them (contract 15). */
export function previewCron(
  expression: string,
  timeZone: string,
  after: number,
  count: number,
): PreviewedTime[] {
  const clock = clockOf(timeZone);
  // One more than is shown: a note also depends on the time behind.
  const times = nextOccurrences(expression, timeZone, after, count + 1);
  return times.slice(0, count).map((at, index) => ({
    at,
    local: localText(clock, at),
    note: noteOf({
      expression,
      clock,
      at,
      before: times[index - 1] ?? after,
      behind: times[index + 1] ?? Infinity,
    }),
  }));
}

/** How far the clock of a zone is ahead of UTC at a time, in ms. */
type ZoneClock = (at: number) => number;

/** A time between the ones before and behind it. */
interface Between {
  expression: string;
  clock: ZoneClock;
  at: number;
  before: number;
  behind: number;
}

function noteOf({ expression, clock, at, before, behind }: Between): string {
  const local = new Date(at + clock(at));
  if (!fitsClock(expression, local.getUTCHours(), local.getUTCMinutes())) {
    return "moved: on this day the clock leaves out the hour in which it would fire";
  }
  // The clock goes back soon, and shows this time once more.
  const back = clock(at) - clock(at + CHANGE_MAX_MS);
  if (back > 0 && clock(at + back) === clock(at) - back) {
    return behind === at + back
      ? "on this day the clock shows this time twice: it fires both times"
      : "on this day the clock shows this time twice: it fires the first time";
  }
  const change = (clock(at) - clock(before)) / MINUTE_MS;
  if (change === 0) return "";
  return `since the time before, the clock went ${change > 0 ? "forward" : "back"} by ${
    Math.abs(change)
  } minutes`;
}

function clockOf(timeZone: string): ZoneClock {
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

function localText(clock: ZoneClock, at: number): string {
  const offset = clock(at) / MINUTE_MS;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.abs(offset) / 60)}:${two(Math.abs(offset) % 60)}`;
  return new Date(at + offset * MINUTE_MS).toISOString().slice(0, 16) + zone;
}
