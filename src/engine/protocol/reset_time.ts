import { createZoneClock } from "../../domain/work/cron.ts";
import type { ClockReset, Reset } from "./reset.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
// A date without a year that has just passed is of this year.
const PASSED_MAX_MS = 7 * DAY_MS;

/**
 * Returns the time of a reset in Unix ms; a reset without a zone counts in `timeZone`. A clock time without seconds counts to the end of
 * its minute. Null for a time that never comes and for an unknown time zone.
 */
export function resolveReset(reset: Reset, now: number, timeZone: string): number | null {
  if ("at" in reset) return reset.at;
  if ("inMs" in reset) return now + reset.inMs;
  try {
    return resolveClock(reset, now, createZoneClock(reset.zone ?? timeZone));
  } catch {
    return null;
  }
}

type ZoneClock = ReturnType<typeof createZoneClock>;

function resolveClock(reset: ClockReset, now: number, clock: ZoneClock): number | null {
  const [minute = 0, hour = 0] = reset.cron.split(" ").slice(0, 2).map(Number);
  const time = (hour * 60 + minute) * MINUTE_MS;
  const length = reset.seconds === undefined ? MINUTE_MS : reset.seconds * 1_000;
  const ends = listDays(reset, now + clock(now)).flatMap((day) => listTimes(day + time, clock))
    .map((at) => at + length);
  const next = ends.find((end) => end > now);
  const last = ends.findLast((end) => end <= now);
  const isNamed = reset.year !== undefined || reset.inDays !== undefined;
  if (last !== undefined && (isNamed ? next === undefined : hasDate(reset) && now - last < PASSED_MAX_MS)) {
    return last;
  }
  return next ?? null;
}

function hasDate({ cron }: ClockReset): boolean {
  return cron.split(" ")[2] !== "*";
}

/** Lists the days that a reset can mean, in order, each as its midnight on the local clock. */
function listDays(reset: ClockReset, local: number): number[] {
  const [day = 0, month = 0, weekday = 0] = reset.cron.split(" ").slice(2).map(Number);
  const today = Math.floor(local / DAY_MS) * DAY_MS;
  if (hasDate(reset)) {
    const year = new Date(local).getUTCFullYear();
    const years = reset.year === undefined ? [year - 1, year, year + 1] : [reset.year];
    // Omits days that a month does not have, such as the 31st.
    return years.map((one) => Date.UTC(one, month - 1, day)).filter((at) =>
      new Date(at).getUTCDate() === day
    );
  }
  if (reset.inDays !== undefined) return [today + reset.inDays * DAY_MS];
  const days = Array.from({ length: 9 }, (_, index) => today + index * DAY_MS);
  return Number.isNaN(weekday) ? days : days.filter((at) => new Date(at).getUTCDay() === weekday);
}

/**
 * Lists the times at which a clock shows a local time. There are two after the clock goes back. If the clock skips the local time, returns
 * the time that it would have been before the jump.
 */
function listTimes(local: number, clock: ZoneClock): number[] {
  const before = clock(local - DAY_MS);
  const offsets = [...new Set([before, clock(local + DAY_MS)])];
  const times = offsets.map((offset) => local - offset).filter((at) => at + clock(at) === local);
  return times.length === 0 ? [local - before] : times.sort((one, other) => one - other);
}
