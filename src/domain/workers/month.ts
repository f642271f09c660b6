import type { Month } from "./budget.ts";

const LONGEST_MS = 32 * 86_400_000;

/** Computes the calendar months of a time zone. Keeps the last result, because most questions are about the same month. */
export class Months {
  readonly #timeZone: string;
  #made: Intl.DateTimeFormat | null = null;
  #last: Month = { start: 0, end: 0 };

  constructor(timeZone: string) {
    this.#timeZone = timeZone;
  }

  // Lazy: the first format of a process takes 20 ms.
  get #format(): Intl.DateTimeFormat {
    return this.#made ??= new Intl.DateTimeFormat("en-CA", {
      timeZone: this.#timeZone,
      year: "numeric",
      month: "2-digit",
    });
  }

  /**
   * Returns the month of `now`, from its first moment to that of the next month, whatever the clock changes in between
   * (contract 14).
   */
  find(now: number): Month {
    if (now >= this.#last.start && now < this.#last.end) return this.#last;
    const name = this.#format.format(now);
    const start = findFirstMoment(this.#format, name, [now - LONGEST_MS, now]);
    // Always in the next month.
    const later = start + LONGEST_MS;
    const end = findFirstMoment(this.#format, this.#format.format(later), [start, later]);
    return this.#last = { start, end };
  }
}

/** A calendar day of a time zone, such as 2026-01-31, from its first moment to that of the next day. */
export interface Day {
  day: string;
  start: number;
  end: number;
}

// Longer than any day, and shorter than any two: clock changes move a day's end by at most an hour.
const OVER_A_DAY_MS = 26 * 3_600_000;

/** Lists the last `count` days of a time zone, oldest first. The last one contains `now`. */
export function listLastDays(timeZone: string, now: number, count: number): Day[] {
  const parts = { year: "numeric", month: "2-digit", day: "2-digit" } as const;
  const format = new Intl.DateTimeFormat("en-CA", { timeZone, ...parts });
  const days: Day[] = [];
  const today = findFirstMoment(format, format.format(now), [now - OVER_A_DAY_MS, now]);
  const tomorrow = today + OVER_A_DAY_MS;
  let end = findFirstMoment(format, format.format(tomorrow), [today, tomorrow]);
  while (days.length < count) {
    const day = format.format(end - 1);
    const start = findFirstMoment(format, day, [end - OVER_A_DAY_MS, end - 1]);
    days.unshift({ day, start, end });
    end = start;
  }
  return days;
}

/** Finds the first moment of the month or day with this name, which starts after the first time and contains the second. */
function findFirstMoment(
  format: Intl.DateTimeFormat,
  name: string,
  [before, inside]: [number, number],
): number {
  let [outside, within] = [before, inside];
  while (within - outside > 1) {
    const middle = Math.floor((outside + within) / 2);
    if (format.format(middle) === name) within = middle;
    else outside = middle;
  }
  return within;
}
