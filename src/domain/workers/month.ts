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
    const start = this.#firstOf(name, now - LONGEST_MS, now);
    // Always in the next month.
    const later = start + LONGEST_MS;
    const end = this.#firstOf(this.#format.format(later), start, later);
    return this.#last = { start, end };
  }

  // Finds the first moment of the month, which starts after `before` and contains `inside`.
  #firstOf(name: string, before: number, inside: number): number {
    let [outside, within] = [before, inside];
    while (within - outside > 1) {
      const middle = Math.floor((outside + within) / 2);
      if (this.#format.format(middle) === name) within = middle;
      else outside = middle;
    }
    return within;
  }
}
