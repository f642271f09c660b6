import { expect, it } from "vitest";
import { backoffMs } from "../../src/base/backoff.ts";
import { formatDuration, parseDurationMs } from "../../src/base/duration.ts";

it.each([
  ["0ms", 0],
  ["300ms", 300],
  ["30s", 30_000],
  ["90s", 90_000],
  ["5m", 300_000],
  ["2h", 7_200_000],
  ["7d", 604_800_000],
  ["999999999ms", 999_999_999],
])("parseDurationMs() parses %s, and formatDuration() formats an equal duration", (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
  expect(parseDurationMs(formatDuration(ms))).toBe(ms);
});

it.each(["", "5", "m", "-1s", "1.5s", "5 m", "5M", "1h30m", "9999999999ms", " 5m", "5m\n"])(
  "parseDurationMs() returns null for %j",
  (text) => expect(parseDurationMs(text)).toBeNull(),
);

it("formatDuration() uses the largest unit that fits", () => {
  expect([0, 1, 1_500, 60_000, 3_600_000, 86_400_000, 90_000_000].map(formatDuration)).toEqual(
    ["0ms", "1ms", "1500ms", "1m", "1h", "1d", "25h"],
  );
});

it("backoffMs grows from the first to the last delay and stays there for any later attempt", () => {
  const retry = { firstMs: 100, lastMs: 5_000 };
  expect([1, 2, 3, 6, 7, 100, 100_000].map((attempt) => backoffMs(retry, attempt))).toEqual(
    [100, 200, 400, 3_200, 5_000, 5_000, 5_000],
  );
  expect([0, 1, 2, 3, 4].map((attempt) => backoffMs({ firstMs: 1_000, lastMs: 16_000, factor: 4 }, attempt)))
    .toEqual([1_000, 1_000, 4_000, 16_000, 16_000]);
});
