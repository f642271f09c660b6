import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  findCronFault,
  findMissedOccurrences,
  findNextOccurrence,
  listNextOccurrences,
  MISSED_COUNT_MAX,
  previewCron,
} from "../../src/domain/work/cron.ts";
import { listExpectedTimes, listZoneChanges, type ZoneChange } from "../harness/zone_changes.ts";

const SEED = 37;
// The long run: SVC_TEST_CRON=100000.
const RUNS = Number(Deno.env.get("SVC_TEST_CRON") ?? 50);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60_000;

// Changes by half an hour, two hours and a whole day, at midnight, and to another standard time.
const UNUSUAL = ["Pacific/Apia", "Antarctica/Troll", "Africa/Casablanca", "Asia/Pyongyang", "America/Caracas"]
  .concat("Asia/Tehran", "Asia/Amman", "America/Havana", "Antarctica/Casey", "Australia/Lord_Howe");

/** A change of the clock without another change within two days. */
const CHANGES: ZoneChange[] = [
  ...Intl.supportedValuesOf("timeZone").flatMap((zone) =>
    listZoneChanges(zone, Date.parse("2026-01-01"), Date.parse("2027-01-01"))
  ),
  ...UNUSUAL.flatMap((zone) => listZoneChanges(zone, Date.parse("2007-01-01"), Date.parse("2026-01-01"))),
].filter(({ zone, at }, index, all) =>
  !all.some((other, place) => place !== index && other.zone === zone && Math.abs(other.at - at) < 3 * DAY_MS)
);

function readField(text: string, min: number, max: number): Set<number> {
  return new Set(
    text.split(",").flatMap((item) => {
      const [range = "", step = "1"] = item.split("/");
      const [first = 0, last = first] = range === "*" ? [min, max] : range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i)
        .filter((value) => (value - first) % Number(step) === 0);
    }),
  );
}

function createMatcher(expression: string): (local: Date) => boolean {
  const [minute = "", hour = "", day = "", , weekday = ""] = expression.split(" ");
  const [minutes, hours] = [readField(minute, 0, 59), readField(hour, 0, 23)];
  const [days, weekdays] = [readField(day, 1, 31), readField(weekday, 0, 6)];
  return (local) => {
    const [fitsDay, fitsWeekday] = [days.has(local.getUTCDate()), weekdays.has(local.getUTCDay())];
    const fits = day === "*" || weekday === "*" ? fitsDay && fitsWeekday : fitsDay || fitsWeekday;
    return fits && minutes.has(local.getUTCMinutes()) && hours.has(local.getUTCHours());
  };
}

function generateField(min: number, max: number, kinds: ("fixed" | "wild")[]): fc.Arbitrary<string> {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: Math.min(max, 12) });
  const fixed = [
    value.map(String),
    range,
    fc.array(fc.oneof(value.map(String), range), { minLength: 2, maxLength: 3 })
      .map((items) => items.join(",")),
  ];
  const wild = [
    fc.constant("*"),
    step.map((every) => `*/${every}`),
    fc.tuple(range, step).map(([from, every]) => `${from}/${every}`),
  ];
  return fc.oneof(...(kinds.includes("fixed") ? fixed : []), ...(kinds.includes("wild") ? wild : []));
}

function generateExpression(kinds: ("fixed" | "wild")[]): fc.Arbitrary<string> {
  const hour = fc.oneof(generateField(0, 3, kinds), generateField(0, 23, kinds));
  const day = fc.oneof({ weight: 4, arbitrary: fc.constant("*") }, {
    weight: 1,
    arbitrary: generateField(1, 31, ["fixed"]),
  });
  const weekday = fc.oneof({ weight: 4, arbitrary: fc.constant("*") }, {
    weight: 1,
    arbitrary: generateField(0, 6, ["fixed"]),
  });
  return fc.tuple(generateField(0, 59, kinds), hour, day, weekday)
    .map(([minutes, hours, days, weekdays]) => `${minutes} ${hours} ${days} * ${weekdays}`);
}

const isFixed = (expression: string) => !/[*/]/.test(expression.split(" ").slice(0, 2).join(" "));
const format = (times: number[]) => times.map((at) => new Date(at).toISOString().slice(0, 16));

describe("times around a change of the clock (contract-3 20.2) [CRN-5]", () => {
  // Each day is a day in UTC.
  it.each([
    ["30 2,14 * * *", "America/New_York", "2026-03-08", "07:00 18:30"],
    ["0,30 2 * * *", "America/New_York", "2026-03-08", "07:00"],
    ["0-59 2 * * *", "America/New_York", "2026-03-08", "07:00"],
    ["30 2,3 * * *", "Europe/Berlin", "2026-03-29", "01:00 01:30"],
    ["0 2-3 * * *", "Europe/Berlin", "2026-03-29", "01:00"],
    ["10,20 2 * * *", "Australia/Lord_Howe", "2026-10-03", "15:30"],
    ["10,40 2 * * *", "Australia/Lord_Howe", "2026-10-03", "15:30 15:40"],
    ["30 1,2 * * *", "Antarctica/Troll", "2026-03-29", "01:00 23:30"],
    ["30 2 29 3 *", "Europe/Paris", "2026-03-29", "01:00"],
    // The gap ends on the next day.
    ["30 23 * * *", "America/Nuuk", "2026-03-29", "01:00"],
    ["15,45 23 * * sat", "America/Nuuk", "2026-03-29", "01:00"],
    ["0 9 30 12 *", "Pacific/Apia", "2011-12-30", "10:00"],
    ["0,30 1 * * *", "America/New_York", "2026-11-01", "05:00 05:30"],
    ["0 0-2 * * *", "America/New_York", "2026-11-01", "04:00 05:00 07:00"],
    ["15,45 1,2 * * sun", "Europe/London", "2026-10-25", "00:15 00:45 02:15 02:45"],
    ["0-59/30 2 * * *", "America/New_York", "2026-03-08", ""],
    ["0,30 */2 * * *", "Europe/Berlin", "2026-03-29", "02:00 02:30 04:00 04:30 06:00 06:30"],
    ["0-30/30 1 * * *", "America/New_York", "2026-11-01", "05:00 05:30 06:00 06:30"],
    ["30 * * * *", "Australia/Lord_Howe", "2026-04-04", "13:30 14:30 15:00 16:00"],
  ])("%s in %s fires on %s at %j", (expression, zone, day, expected) => {
    const start = Date.parse(day) + (zone.includes("Lord_Howe") ? 13 : 0) * HOUR_MS;
    const hours = /[*/]/.test(expression.slice(0, 8)) && expected !== ""
      ? expected.split(" ").at(-1)
      : "23:59";
    const until = Date.parse(`${day}T${isFixed(expression) ? "23:59" : hours}Z`);
    const times = listNextOccurrences(expression, zone, start - 1, 30).filter((at) => at <= until);
    expect(format(times).map((time) => time.slice(11)).join(" ")).toBe(expected);
  });

  it(
    `are the times that counting minutes finds, in all zones, also for missed times: ${RUNS} expressions (seed ${SEED})`,
    () => {
      const expression = fc.oneof(generateExpression(["fixed"]), generateExpression(["fixed", "wild"]));
      const minutes = fc.integer({ min: -6 * 60, max: 6 * 60 });
      fc.assert(
        fc.property(expression, fc.constantFrom(...CHANGES), minutes, (text, change, offset) => {
          fc.pre(findCronFault(text, change.zone, change.at) === null);
          const [from, to] = [change.at - 30 * HOUR_MS, change.at + 30 * HOUR_MS];
          const expected = listExpectedTimes(createMatcher(text), isFixed(text), change, [from, to]);
          const times = listNextOccurrences(text, change.zone, from - 1, expected.length + 1);
          expect(format(times.filter((at) => at < to))).toEqual(format(expected));

          const now = change.at + offset * MINUTE_MS;
          const next = expected.find((at) => at > now);
          const found = findNextOccurrence(text, change.zone, now);
          expect(next === undefined ? found === null || found >= to : found === next).toBe(true);

          const missed = expected.filter((at) => at <= now);
          expect(findMissedOccurrences(text, change.zone, from, now)).toEqual(
            missed.length === 0
              ? null
              : { latest: missed.at(-1), count: Math.min(missed.length, MISSED_COUNT_MAX) },
          );
        }),
        { numRuns: RUNS, seed: SEED },
      );
    },
    120_000,
  );

  it("fire a fixed time once a day at each change of every zone", () => {
    const time = fc.tuple(fc.integer({ min: 0, max: 59 }), fc.constantFrom(...CHANGES));
    fc.assert(
      fc.property(time, ([minute, change]) => {
        const { zone, at, before, after } = change;
        const touched = new Date(Math.min(at + before, at + after) + minute * MINUTE_MS);
        const text = `${touched.getUTCMinutes()} ${touched.getUTCHours()} * * *`;
        const from = at - 60 * HOUR_MS;
        const count = Math.round((120 * HOUR_MS + after - before) / DAY_MS);
        const times = listNextOccurrences(text, zone, from, 10).filter((one) => one <= at + 60 * HOUR_MS);
        expect([zone, text, times.length]).toEqual([zone, text, count]);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  }, 120_000);
});

describe("previewCron() [CRN-5]", () => {
  const preview = (expression: string, zone: string, after: string, count: number) =>
    previewCron(expression, zone, Date.parse(after), count).map(({ local, note }) =>
      `${local.slice(5)} ${note}`.trim()
    );
  const twice = "on this day the clock shows this time twice: the schedule fires";

  it("reports for each fixed time of a list whether a clock change skips or repeats it", () => {
    expect(preview("0,30 1 * * *", "America/New_York", "2026-10-31T12:00Z", 3)).toEqual([
      `11-01T01:00-04:00 ${twice} the first time`,
      `11-01T01:30-04:00 ${twice} the first time`,
      "11-02T01:00-05:00 since the previous time, the clock went back by 60 minutes",
    ]);
    expect(preview("30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 3)).toEqual([
      "03-29T03:00+02:00 moved: on this day the clock skips the hour in which the schedule would fire",
      "03-29T03:30+02:00",
      "03-30T02:30+02:00",
    ]);
    expect(preview("0 2-3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 2)).toEqual([
      "03-29T03:00+02:00 on this day the clock skips other times of the schedule: it fires once for them and this time",
      "03-30T02:00+02:00",
    ]);
  });

  it("reports that each repeated time of a step fires twice, and that skipped times are left out", () => {
    expect(preview("*/30 1 * * *", "America/New_York", "2026-10-31T12:00Z", 4)).toEqual([
      `11-01T01:00-04:00 ${twice} both times`,
      `11-01T01:30-04:00 ${twice} both times`,
      "11-01T01:00-05:00 since the previous time, the clock went back by 60 minutes",
      `11-01T01:30-05:00 ${twice} both times`,
    ]);
    const left =
      "since the previous time, the clock went forward by 60 minutes and skipped times of the schedule, which are left out";
    expect(preview("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 2)).toEqual([
      `03-30T02:00+02:00 ${left}`,
      "03-30T02:30+02:00",
    ]);
    expect(preview("0 */12 * * *", "Europe/Berlin", "2026-03-28T13:00Z", 2)).toEqual([
      "03-29T00:00+01:00",
      "03-29T12:00+02:00 since the previous time, the clock went forward by 60 minutes",
    ]);
    expect(preview("*/30 0 * * *", "America/Havana", "2026-03-07T12:00Z", 1)).toEqual([
      `03-09T00:00-04:00 ${left}`,
    ]);
  });
});
