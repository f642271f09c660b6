import { expect, it } from "vitest";
import { parseTime } from "../../cli/commands/time.ts";

const NOW = Date.parse("2026-11-21T14:20:00Z");
const HOUR = 3_600_000;

it("parseTime() reads Unix ms, ISO 8601 and relative times (contract 8.11)", () => {
  const cases: [string, number][] = [
    ["1700000000000", 1_700_000_000_000],
    ["-5", -5],
    ["9".repeat(19), 8_640_000_000_000_000],
    ["now", NOW],
    ["-1h", NOW - HOUR],
    ["+10m", NOW + 600_000],
    ["+1h30m", NOW + 1.5 * HOUR],
    ["1 hour ago", NOW - HOUR],
    ["2 days 3 hours ago", NOW - 51 * HOUR],
    ["in 90 seconds", NOW + 90_000],
    ["-1w", NOW - 7 * 24 * HOUR],
    ["2026-11-21T14:20:00Z", NOW],
    ["2026-11-21T15:20:00.000+01:00", NOW],
    ["2026-11-21T14:20", new Date(2026, 10, 21, 14, 20).getTime()],
    ["2026-11-21 14:20", new Date(2026, 10, 21, 14, 20).getTime()],
    ["2026-11-21", new Date(2026, 10, 21).getTime()],
  ];
  for (const [text, ms] of cases) expect([text, parseTime(text, "--x", NOW)]).toEqual([text, ms]);
});

it("parseTime() reads a span without a sign as past where only the past makes sense", () => {
  expect(parseTime("2w", "--since", NOW)).toBe(NOW - 14 * 86_400_000);
  expect(parseTime("1h30m", "--started-from", NOW)).toBe(NOW - 5_400_000);
  expect(parseTime("2 days ago", "--since", NOW)).toBe(NOW - 2 * 86_400_000);
});

it("parseTime() refuses ambiguous and invalid times", () => {
  const wrong = ["", "1h", "soon", "-", "+", "-1x", "1h ago ago", "+1h ago"];
  for (const text of [...wrong, "2026-13-01", "11/21/2026", "-1h junk"]) {
    expect(() => parseTime(text, "--x", NOW), text).toThrow(/^--x: .* is not a time such as -1h, \+10m/);
  }
});
