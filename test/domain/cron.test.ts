import { CronPattern } from "croner";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  findCronFault,
  findMissedOccurrences,
  findNextOccurrence,
  listNextOccurrences,
  MISSED_COUNT_MAX,
  previewCron,
} from "../../src/domain/work/cron.ts";
import { countProcessorMs } from "../harness/service/processor_time.ts";

// The long run: SVC_TEST_CRON=100000.
const STRINGS = Number(Deno.env.get("SVC_TEST_CRON") ?? 5_000);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const NOW = Date.parse("2026-01-01T00:00:00Z");
const next = (expression: string, zone: string, after: string) => {
  const at = findNextOccurrence(expression, zone, Date.parse(after));
  return at === null ? null : new Date(at).toISOString().slice(0, 16) + "Z";
};

describe("findCronFault() (interface 7.2, contract 3) [CRN-6]", () => {
  it.each([
    "* * * * *",
    "*/5 * * * *",
    "0 9 * * 1-5",
    "0,30 8-18/2 1,15 jan-jun MON,wed",
    "59 23 31 12 7",
    "0 0 29 2 *",
    "1-10/3 * * * *",
    "  0 9 * * *  ",
    "0\t9 * * *",
  ])("%j can fire", (expression) => expect(findCronFault(expression, "UTC", NOW)).toBeNull());

  it.each([
    ["", /empty/],
    ["   ", /empty/],
    ["61 * * * *", /^minute: 61 is not 0-59/],
    ["* 24 * * *", /^hour: /],
    ["* * 0 * *", /^day of month: /],
    ["* * 32 * *", /^day of month: /],
    ["* * * 13 *", /^month: 13 is not 1-12 or a name/],
    ["* * * 0 *", /^month: /],
    ["* * * * 8", /^day of week: /],
    ["* * * *", /five fields.*has 4/],
    ["* * * * * *", /five fields.*has 6/],
    ["0 0 0 1 1 * 2030", /has 7/],
    ["@daily", /nicknames/],
    ["@reboot", /nicknames/],
    ["@every 1h", /nicknames/],
    ["2026-01-01T00:00:00", /has 1/],
    ["0 0 L * *", /^day of month: /],
    ["0 0 15W * *", /^day of month: /],
    ["0 0 * * 5L", /^day of week: /],
    ["0 0 * * 1#2", /^day of week: /],
    ["? * * * *", /^minute: /],
    ["H * * * *", /^minute: /],
    ["*/0 * * * *", /the step 0 is outside 1-60/],
    ["*/61 * * * *", /the step 61/],
    ["5/15 * * * *", /a step needs a range/],
    ["10-5 * * * *", /runs backwards/],
    ["0 22-2 * * *", /runs backwards/],
    ["1,,2 * * * *", /cannot read ""/],
    ["1-2-3 * * * *", /cannot read/],
    ["*/5/2 * * * *", /cannot read/],
    ["-1 * * * *", /cannot read/],
    ["+1 * * * *", /cannot read/],
    ["1.5 * * * *", /cannot read/],
    ["** * * * *", /cannot read/],
    ["* * * foo *", /month: foo/],
    ["* * * january *", /month: january/],
    ["* * * * mon-", /cannot read/],
    ["jan * * * *", /minute: jan/],
    ["0 0 31 2 *", /never fires/],
    ["0 0 30 feb *", /never fires/],
    ["0 0 31 4,6,9,11 *", /never fires/],
    ["* * * * * ; rm -rf /", /has 9/],
    ["\u0660 * * * *", /cannot read/],
  ])(
    "%j cannot fire: %s",
    (expression, words) => expect(findCronFault(expression, "UTC", NOW)).toMatch(words),
  );

  it("names an unknown zone [CRN-10]", () =>
    expect(findCronFault("* * * * *", "Mars/Base", NOW)).not.toBeNull());

  it(
    `never throws and never takes long: ${STRINGS} random strings (seed ${SEED}) [CRN-6]`,
    () => {
      const part = fc.stringMatching(/^[0-9*,/a-zLW#?@-]{0,8}$/);
      const expression = fc.oneof(
        fc.string(),
        fc.array(part, { minLength: 4, maxLength: 6 }).map((parts) => parts.join(" ")),
      );
      const times: number[] = [];
      fc.assert(
        fc.property(expression, (text) => {
          const processorMs = countProcessorMs();
          findCronFault(text, "UTC", NOW);
          times.push(processorMs());
        }),
        { numRuns: STRINGS, seed: SEED },
      );
      times.sort((a, b) => a - b);
      expect(times).toHaveLength(STRINGS);
      expect(times[Math.floor(STRINGS * 0.999)]).toBeLessThan(5);
      // A single call may coincide with garbage collection.
      expect(times.at(-1)).toBeLessThan(100);
    },
    60_000 + STRINGS,
  );
});

describe("findNextOccurrence() across changes of the clock [CRN-5]", () => {
  it.each([
    // New York: gap on 8 March 2026 at 02:00, overlap on 1 November 2026 at 02:00.
    ["30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00Z"],
    ["30 2 * * *", "America/New_York", "2026-03-08T12:00:00Z", "2026-03-09T06:30Z"],
    ["30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30Z"],
    ["30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-02T06:30Z"],
    ["*/30 2 * * *", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T06:00Z"],
    ["0 * * * *", "America/New_York", "2026-03-08T06:00:00Z", "2026-03-08T07:00Z"],
    ["0 * * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01T06:00Z"],
    ["0 12 * * *", "America/New_York", "2026-03-08T00:00:00Z", "2026-03-08T16:00Z"],
    // London: gap on 29 March 2026 at 01:00, overlap on 25 October 2026 at 02:00.
    ["30 1 * * *", "Europe/London", "2026-03-28T12:00:00Z", "2026-03-29T01:00Z"],
    ["30 1 * * *", "Europe/London", "2026-10-24T12:00:00Z", "2026-10-25T00:30Z"],
    ["30 1 * * *", "Europe/London", "2026-10-25T00:30:00Z", "2026-10-26T01:30Z"],
    // Lord Howe moves by half an hour: gap on 4 October 2026 at 02:00, overlap on 5 April 2026 at 02:00.
    ["15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30Z"],
    ["45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", "2026-04-04T14:45Z"],
    // Sao Paulo no longer has daylight saving time.
    ["0 0 * * *", "America/Sao_Paulo", "2026-10-17T12:00:00Z", "2026-10-18T03:00Z"],
    ["30 2 * * *", "UTC", "2026-03-08T00:00:00Z", "2026-03-08T02:30Z"],
  ])("%s in %s after %s is %s", (expression, zone, after, expected) => {
    expect(next(expression, zone, after)).toBe(expected);
  });

  it("is always strictly later", () => {
    expect(next("* * * * *", "UTC", "2026-01-01T00:00:00.000Z")).toBe("2026-01-01T00:01Z");
    expect(next("* * * * *", "UTC", "2025-12-31T23:59:59.999Z")).toBe("2026-01-01T00:00Z");
    expect(next("0 0 29 2 *", "UTC", "2024-02-29T00:00:00Z")).toBe("2028-02-29T00:00Z");
  });
});

const HOUR_MS = 3_600_000;
const PROPERTIES = Math.ceil(STRINGS / 10);
// Clock changes: by an hour, by half an hour, over a whole day; and a zone without any.
const CHANGES: Record<string, string[]> = {
  "Europe/Berlin": ["2026-03-29T01:00Z", "2026-10-25T01:00Z"],
  "America/New_York": ["2026-03-08T07:00Z", "2026-11-01T06:00Z"],
  "Australia/Lord_Howe": ["2026-04-04T15:00Z", "2026-10-03T15:30Z"],
  "Pacific/Apia": ["2011-12-30T10:00Z"],
  "Asia/Kathmandu": ["2026-03-29T01:00Z"],
};

/** Generates a field of a cron expression in each of its forms. */
function generateField(min: number, max: number): fc.Arbitrary<string> {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: max - min + 1 });
  return fc.oneof(
    fc.constant("*"),
    value.map(String),
    range,
    fc.array(value, { minLength: 2, maxLength: 4 }).map((values) => values.join(",")),
    step.map((every) => `*/${every}`),
    fc.tuple(range, step).map(([from, every]) => `${from}/${every}`),
  );
}

describe("listNextOccurrences() [CRN-5]", () => {
  it(
    `returns the same times as repeated calls of findNextOccurrence(): ${PROPERTIES} expressions around changes of the clock (seed ${SEED})`,
    () => {
      const rarely = (some: fc.Arbitrary<string>) =>
        fc.oneof({ weight: 4, arbitrary: fc.constant("*") }, { weight: 1, arbitrary: some });
      const weekday = fc.oneof(generateField(0, 6), fc.constant("7"));
      // Clocks change at night.
      const hour = fc.oneof(generateField(0, 3), generateField(0, 23));
      const expression = fc.tuple(
        generateField(0, 59),
        hour,
        rarely(generateField(1, 31)),
        rarely(generateField(1, 12)),
        rarely(weekday),
      );
      const start = fc.constantFrom(...Object.keys(CHANGES)).chain((zone) =>
        fc.tuple(
          fc.constant(zone),
          fc.constantFrom(...(CHANGES[zone] ?? [])),
          fc.oneof(fc.integer({ min: -2, max: 2 }), fc.integer({ min: -30, max: 3 })),
          fc.integer({ min: 0, max: HOUR_MS - 1 }),
        )
      );
      fc.assert(
        fc.property(
          expression,
          start,
          fc.integer({ min: 0, max: 12 }),
          (fields, [zone, change, hours, ms], count) => {
            const text = fields.join(" ");
            const after = Date.parse(change) + hours * HOUR_MS + ms;
            const expected: number[] = [];
            for (let at: number | null = after; at !== null && expected.length < count;) {
              at = findNextOccurrence(text, zone, at);
              if (at !== null) expected.push(at);
            }
            expect(listNextOccurrences(text, zone, after, count)).toEqual(expected);
          },
        ),
        { numRuns: PROPERTIES, seed: SEED },
      );
    },
    60_000 + 10 * STRINGS,
  );

  it("a preview parses its expression once, and evicts no cached times of schedules", () => {
    const read = vi.spyOn(CronPattern.prototype as unknown as { parse: () => void }, "parse");
    expect(previewCron("7 * * * *", "Europe/Berlin", NOW, 50)).toHaveLength(50);
    expect(read).toHaveBeenCalledTimes(1);
    findNextOccurrence("7 * * * *", "Europe/Berlin", NOW);
    expect(read).toHaveBeenCalledTimes(2);
    findNextOccurrence("7 * * * *", "Europe/Berlin", NOW);
    expect(read).toHaveBeenCalledTimes(2);
    read.mockRestore();
  });
});

describe("findMissedOccurrences() [CRN-2, CRN-3]", () => {
  const missed = (expression: string, from: string, now: string) => {
    const found = findMissedOccurrences(expression, "UTC", Date.parse(from), Date.parse(now));
    return found === null ? null : [new Date(found.latest).toISOString().slice(0, 16), found.count];
  };

  it("counts from the expected time to now, both included [CRN-2]", () => {
    expect(missed("*/10 * * * *", "2026-01-01T00:00Z", "2026-01-01T00:00Z")).toEqual(["2026-01-01T00:00", 1]);
    expect(missed("*/10 * * * *", "2026-01-01T00:00Z", "2026-01-01T00:29Z")).toEqual(["2026-01-01T00:20", 3]);
    expect(missed("0 9 * * *", "2026-01-02T09:00Z", "2026-01-02T08:00Z")).toBeNull();
  });

  it("is fast over decades, and finds the latest time", () => {
    const processorMs = countProcessorMs();
    expect(missed("* * * * *", "1970-01-01T00:01Z", "2036-06-15T12:34:56Z")).toEqual([
      "2036-06-15T12:34",
      MISSED_COUNT_MAX,
    ]);
    expect(processorMs()).toBeLessThan(250);
    expect(missed("0 0 1 1 *", "1970-01-01T00:00Z", "2036-06-15T12:34Z")).toEqual(["2036-01-01T00:00", 67]);
    expect(missed("* 3 * * *", "1990-01-01T03:00Z", "2036-06-15T12:34Z")).toEqual([
      "2036-06-15T03:59",
      MISSED_COUNT_MAX,
    ]);
  });
});
