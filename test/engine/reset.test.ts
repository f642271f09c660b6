import { describe, expect, it } from "vitest";
import { parseReset } from "../../src/engine/protocol/reset.ts";
import { resolveReset } from "../../src/engine/protocol/reset_time.ts";

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
  ])(
    "finds no time in: %s",
    (words) => {
      expect(at(words)).toBeNull();
    },
  );
});
