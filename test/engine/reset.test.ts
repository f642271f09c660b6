import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseReset } from "../../src/engine/protocol/reset.ts";
import { resolveReset } from "../../src/engine/protocol/reset_time.ts";
import { findProcessZone } from "../../src/engine/protocol/reset_zone.ts";

const NOW = Date.parse("2026-11-21T13:38:44Z");

function at(words: string, timeZone = "UTC"): string | null {
  const reset = parseReset(words);
  const time = reset === null ? null : resolveReset(reset, NOW, timeZone);
  return time === null ? null : new Date(time).toISOString().slice(0, 19);
}

describe("parseReset() and resolveReset()", () => {
  it.each([
    // As Codex 0.169 writes it. The named minute must have ended.
    ["purchase more credits or try again at 2:38 PM.", "2026-11-21T14:39:00"],
    ["more credits or try again at Nov 25th, 2026 5:38 PM.", "2026-11-25T17:39:00"],
    ["try again at 12:05 AM.", "2026-11-22T00:06:00"],
    // As Claude Code 2.1 writes it.
    ["You've hit your 5-hour limit · resets 2:36pm (UTC)", "2026-11-21T14:37:00"],
    ["You've hit your weekly limit · resets Nov 24, 3am (UTC)", "2026-11-24T03:01:00"],
    // As model providers write it.
    ["Please try again in 11.054s.", "2026-11-21T13:38:55"],
    ["Please try again in 1h2m3.5s. Visit", "2026-11-21T14:40:47"],
    ["Please retry in 3600.5s.", "2026-11-21T14:38:44"],
    ["try again in 3 days 4 hours 5 minutes.", "2026-11-24T17:43:44"],
    ["Your quota will reset after 5h10m.", "2026-11-21T18:48:44"],
    ["Suggested retry after 90s.", "2026-11-21T13:40:14"],
    ["try again in 500ms", "2026-11-21T13:38:44"],
  ])("%s", (words, time) => {
    expect(at(words)).toBe(time);
  });

  // 2026-11-21 is a Saturday.
  it.each([
    ["resets 3am (Europe/Berlin)", "2026-11-22T02:01:00"],
    ["resets Nov 24, 3am (America/Los_Angeles)", "2026-11-24T11:01:00"],
    ["resets at 3pm PST", "2026-11-21T23:01:00"],
    ["resets at 9:30 a.m. EST", "2026-11-21T14:31:00"],
    ["try again at 15:00 CET", "2026-11-21T14:01:00"],
    ["try again at 15:00 UTC+5:30", "2026-11-22T09:31:00"],
    ["try again after 3 PM GMT-8.", "2026-11-21T23:01:00"],
    ["Your limit will reset at 9am Pacific Time.", "2026-11-21T17:01:00"],
    ["Your limit will reset at 9:00 AM Eastern Standard Time", "2026-11-21T14:01:00"],
    ["available again at 08:00 (+09:00)", "2026-11-21T23:01:00"],
    ["resets at midnight UTC", "2026-11-22T00:01:00"],
    ["resets daily at midnight (Asia/Tokyo)", "2026-11-21T15:01:00"],
    ["resets 12pm noon", "2026-11-22T12:01:00"],
    // 24 hours, days of the week, and tomorrow.
    ["try again at 14:38", "2026-11-21T14:39:00"],
    ["Limit resets at 02:15", "2026-11-22T02:16:00"],
    ["resets at 23:59:30", "2026-11-21T23:59:30"],
    ["resets Monday at 9:00 AM", "2026-11-23T09:01:00"],
    ["resets on Sat, 9am", "2026-11-28T09:01:00"],
    ["try again on Wednesday at 17:00 UTC", "2026-11-25T17:01:00"],
    ["resets Thurs 3pm (Asia/Kolkata)", "2026-11-26T09:31:00"],
    ["resets at 9am on Monday", "2026-11-23T09:01:00"],
    ["resets Monday", "2026-11-23T00:00:00"],
    ["try again tomorrow at 9am", "2026-11-22T09:01:00"],
    ["try again tomorrow at 6am (America/New_York)", "2026-11-22T11:01:00"],
    ["resets at 18:30 tomorrow", "2026-11-22T18:31:00"],
    ["resets today at 5pm", "2026-11-21T17:01:00"],
    ["Try again tomorrow.", "2026-11-22T00:00:00"],
    ["resets 25 November at 5pm", "2026-11-25T17:01:00"],
    ["resets Dec 2", "2026-12-02T00:00:00"],
    ["resets Jan 3, 3am", "2027-01-03T03:01:00"],
    ["resets Nov 21, 1pm", "2026-11-21T13:01:00"],
    // ISO 8601, HTTP dates, and Unix times.
    ["resets at 2026-11-25T17:38:00Z", "2026-11-25T17:38:00"],
    ["resets at 2026-11-25T17:38:00.123+02:00", "2026-11-25T15:38:00"],
    ["retry after 2026-11-25 17:38:10 -0800", "2026-11-26T01:38:10"],
    ['{"reset_at":"2026-11-25T17:38:00+05:30"}', "2026-11-25T12:08:00"],
    ['{"resetTime": "2026-11-25T17:38:00Z"}', "2026-11-25T17:38:00"],
    ["available again on 2026-11-25 at 17:38", "2026-11-25T17:39:00"],
    ["Retry-After: Wed, 25 Nov 2026 07:28:00 GMT", "2026-11-25T07:28:00"],
    ["Claude AI usage limit reached|1795272000", "2026-11-21T14:40:00"],
    ['{"resets_at":1795272000,"x":1}', "2026-11-21T14:40:00"],
    ['{"resetsAt": 1795272000000}', "2026-11-21T14:40:00"],
    ["x-ratelimit-reset: 1795272000", "2026-11-21T14:40:00"],
    // Spans.
    ["Try again in 3 hours.", "2026-11-21T16:38:44"],
    ["resets in 2h 30m", "2026-11-21T16:08:44"],
    ["try again in about an hour", "2026-11-21T14:38:44"],
    ["try again in 2 hours and 5 minutes", "2026-11-21T15:43:44"],
    ["resets in 1 week", "2026-11-28T13:38:44"],
    ["Please wait 5 minutes before you continue", "2026-11-21T13:43:44"],
    ["limit reached, resets in 01:30:00", "2026-11-21T15:08:44"],
    ["Retry-After: 120", "2026-11-21T13:40:44"],
    ["retry-after-ms: 1500", "2026-11-21T13:38:45"],
    ['{"resets_in_seconds":9000}', "2026-11-21T16:08:44"],
    ['{"retryAfterSeconds": 60}', "2026-11-21T13:39:44"],
    ['"retryDelay": "41s"', "2026-11-21T13:39:25"],
  ])("%s", (words, time) => {
    expect(at(words)).toBe(time);
  });

  it("uses the time zone of the process for a zone with several meanings", () => {
    expect(at("resets at 3pm CST", "Asia/Shanghai")).toBe("2026-11-22T07:01:00");
    expect(at("resets at 3pm IST", "Asia/Kolkata")).toBe("2026-11-22T09:31:00");
    expect(at("resets at 3pm local time", "Asia/Tokyo")).toBe("2026-11-22T06:01:00");
  });

  it("names the moment that a clock shows next, in every time zone", () => {
    const zones = Intl.supportedValuesOf("timeZone");
    const show = (time: number, timeZone: string, more: Intl.DateTimeFormatOptions) =>
      new Intl.DateTimeFormat("en-US", { timeZone, hour: "numeric", minute: "2-digit", ...more }).format(
        time,
      );
    const styles: [string, Intl.DateTimeFormatOptions][] = [
      ["resets at", { hourCycle: "h12" }],
      ["try again at", { hourCycle: "h23", hour: "2-digit" }],
      ["resets", { hourCycle: "h12", month: "short", day: "numeric" }],
      ["Try again on", { hourCycle: "h23", hour: "2-digit", weekday: "long" }],
      ["resets", { hourCycle: "h12", month: "long", day: "numeric", year: "numeric" }],
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: Date.parse("2026-01-01T00:00:00Z"), max: Date.parse("2029-01-01T00:00:00Z") }),
        fc.integer({ min: 0, max: 23 * 60 - 1 }),
        fc.constantFrom(...styles),
        fc.boolean(),
        (zone, now, minutes, [lead, style], isNamed) => {
          const meant = Math.floor(now / 60_000) * 60_000 + minutes * 60_000;
          const shown = show(meant, zone, style);
          const first = Array.from({ length: 13 }, (_, index) => meant - (12 - index) * 15 * 60_000)
            .find((time) => time > now - 60_000 && show(time, zone, style) === shown);
          const reset = parseReset(`${lead} ${shown}${isNamed ? ` (${zone})` : ""}`);
          expect(reset && resolveReset(reset, now, isNamed ? "UTC" : zone)).toBe((first ?? meant) + 60_000);
        },
      ),
      { seed: 37, numRuns: 600 },
    );
  });

  it.each([
    [undefined, null],
    ["", "UTC"],
    ["Europe/Berlin", "Europe/Berlin"],
    [":Europe/Berlin", "Europe/Berlin"],
    ["/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"],
    ["UTC0", "UTC"],
    ["JST-9", "+09:00"],
    ["<+0530>-5:30", "+05:30"],
    ["nonsense", null],
  ])("findProcessZone(%j)", (tz, zone) => {
    expect(findProcessZone(tz)).toBe(zone);
  });

  it("reads a clock time in the run's time zone", () => {
    expect(at("try again at 11:41 PM", "Asia/Tokyo")).toBe("2026-11-21T14:42:00");
  });

  it.each([
    "Too many requests",
    "status 429",
    "Retrying in 60s",
    "in 5 steps",
    "resets soon",
    "again at 31:99 XM",
    "again at 25:00",
    "resets next month",
    "Support is available 24 hours a day",
    "Try again later",
    "retry in 5 steps",
    "resets today",
  ])(
    "finds no time in: %s",
    (words) => {
      expect(at(words)).toBeNull();
    },
  );
});
