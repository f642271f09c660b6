import { describe, expect, it } from "vitest";
import { computeNextLimit } from "../../src/domain/workers/rate_limit.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const MINUTE = 60_000;

describe("computeNextLimit()", () => {
  it("waits until the given time, at least a second, at most eight days", () => {
    const until = (resetsAt: number) => computeNextLimit("claude", null, resetsAt, NOW).until - NOW;
    expect(until(NOW + 5 * MINUTE)).toBe(5 * MINUTE);
    expect(until(NOW - MINUTE)).toBe(1_000);
    expect(until(NOW + 365 * 86_400_000)).toBe(8 * 86_400_000);
    // A table stores whole milliseconds only.
    expect(until(NOW + 5_000.2)).toBe(5_001);
  });

  it("retries without a given time after 1, 4, 16 minutes, and then every hour [DSP-13]", () => {
    let limit = computeNextLimit("claude", null, null, NOW);
    const waits = [limit.until - NOW];
    for (let run = 0; run < 5; run++) {
      const now = limit.until;
      limit = computeNextLimit("claude", limit, null, now);
      waits.push(limit.until - now);
    }
    expect(waits.map((ms) => ms / MINUTE)).toEqual([1, 4, 16, 60, 60, 60]);
  });

  it.each([
    ["names a date that has passed", 86_400_000],
    ["names no wait", 0],
  ])("retries once after a second, and then as without a time, while the provider %s", (_what, agoMs) => {
    let limit = computeNextLimit("claude", null, NOW - agoMs, NOW);
    const waits = [limit.until - NOW];
    for (let run = 0; run < 3; run++) {
      const now = limit.until;
      limit = computeNextLimit("claude", limit, now - agoMs, now);
      waits.push(limit.until - now);
    }
    expect(waits).toEqual([1_000, 4 * MINUTE, 16 * MINUTE, 60 * MINUTE]);
    const now = limit.until;
    expect(computeNextLimit("claude", limit, now + 1, now).until - now).toBe(1_000);
  });

  it("counts runs that meet a limit together as one strike, and the later time wins", () => {
    const first = computeNextLimit("claude", null, null, NOW);
    expect(computeNextLimit("claude", first, null, NOW + 10_000)).toEqual(first);
    expect(computeNextLimit("claude", first, NOW + 10 * MINUTE, NOW)).toEqual({
      ...first,
      until: NOW + 10 * MINUTE,
      announced: 1,
    });
    expect(computeNextLimit("claude", first, NOW + 10_000, NOW)).toEqual(first);
  });
});
