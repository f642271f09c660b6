import { createZoneClock } from "../../src/domain/work/cron.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A change of a zone's offset from UTC. Both offsets are in ms. */
export interface ZoneChange {
  zone: string;
  at: number;
  before: number;
  after: number;
}

/** Lists the moments between two times at which a zone changes its offset. */
export function listZoneChanges(zone: string, from: number, to: number): ZoneChange[] {
  const clock = createZoneClock(zone);
  const changes: ZoneChange[] = [];
  for (let day = from, before = clock(day); day < to; day += DAY_MS) {
    const after = clock(day + DAY_MS);
    if (after === before) continue;
    let [low, high] = [day, day + DAY_MS];
    while (high - low > MINUTE_MS) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS;
      if (clock(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ zone, at: high, before, after: clock(high) });
    before = after;
  }
  return changes;
}

/** Lists the minutes at which an expression fires around one change of the clock (contract-3 20.2). */
export function listExpectedTimes(
  matches: (local: Date) => boolean,
  isFixed: boolean,
  { at, before, after }: ZoneChange,
  [from, to]: [number, number],
): number[] {
  const times: number[] = [];
  const fits = (localMs: number) => matches(new Date(localMs));
  for (let minute = from; minute < to; minute += MINUTE_MS) {
    const local = minute + (minute < at ? before : after);
    const isSecondPass = minute >= at && local < at + before;
    if (fits(local) && !(isFixed && isSecondPass)) times.push(minute);
    else if (isFixed && minute === at) {
      for (let skipped = at + before; skipped < at + after; skipped += MINUTE_MS) {
        if (!fits(skipped)) continue;
        times.push(minute);
        break;
      }
    }
  }
  return times;
}
