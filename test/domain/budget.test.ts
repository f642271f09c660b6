import { describe, expect, it } from "vitest";
import {
  classifyBudget,
  findCountEnd,
  findCountStart,
  mayStart,
  mustStop,
} from "../../src/domain/workers/budget.ts";
import { Months } from "../../src/domain/workers/month.ts";

function formatLocal(time: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  return parts.format(time);
}

describe("the month of a budget (contract 14)", () => {
  it.each(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Chatham"])(
    "starts and ends at midnight of a first day in %s, with 28 to 31 days and the clock changes of a year",
    (zone) => {
      const months = new Months(zone);
      let now = Date.parse("2026-01-15T12:00:00Z");
      const days: number[] = [];
      for (let month = 1; month <= 12; month++) {
        const { start, end } = months.find(now);
        const name = `2026-${String(month).padStart(2, "0")}`;
        expect(formatLocal(start, zone)).toBe(`${name}-01 00:00:00`);
        expect(formatLocal(start - 1, zone)).not.toContain(name);
        expect(formatLocal(end - 1, zone)).toContain(name);
        expect(formatLocal(end, zone)).toMatch(/-01 00:00:00$/);
        expect(months.find(end - 1)).toEqual({ start, end });
        days.push(Math.round((end - start) / 86_400_000));
        now = end + 14 * 86_400_000;
      }
      expect(days).toEqual([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]);
    },
  );

  it("counts usage from its first moment on, and a rolling period counts usage in the time before now", () => {
    const month = { start: 1_000_000_000, end: 2_000_000_000 };
    expect(findCountStart("month", 1_500_000_000, month)).toBe(month.start - 1);
    expect(findCountEnd("month", 1_500_000_000, month)).toBe(month.end);
    expect(findCountStart("5h", 100_000_000, month)).toBe(82_000_000);
    expect(findCountEnd("5h", 82_000_000, month)).toBe(100_000_000);
    expect([findCountStart("total", 5, month), findCountEnd("total", 5, month)]).toEqual([-1, null]);
  });
});

describe("the limit of a budget (contract 14, decision 0015)", () => {
  const tokens = { limit: 100, unit: "tokens" as const, soft: 80 };
  const standing = (used: number, reserved = 0) => ({ used, reserved, unmeasured: false });

  it("lets a run within it start, and the first run always", () => {
    expect(mayStart(tokens, standing(90), 10)).toBe(true);
    expect(mayStart(tokens, standing(90), 11)).toBe(false);
    expect(mayStart(tokens, standing(60, 30), 11)).toBe(false);
    expect(mayStart(tokens, standing(0), 1_000)).toBe(true);
    expect(mayStart(tokens, standing(100), 0)).toBe(false);
  });

  it("blocks every run if it is 0", () => {
    expect(mayStart({ ...tokens, limit: 0 }, standing(0), 0)).toBe(false);
    expect(classifyBudget({ ...tokens, limit: 0 }, standing(0))).toBe("hard");
  });

  it("is soft at its percentage, and hard when used and reserved amounts reach it", () => {
    const states = [79, 80, 99, 100].map((used) => classifyBudget(tokens, standing(used)));
    expect(states).toEqual(["ok", "soft", "soft", "hard"]);
    expect(classifyBudget(tokens, standing(50, 50))).toBe("hard");
  });

  it("stops runs when it is used up, and a limit of runs only beyond it", () => {
    expect([99, 100].map((used) => mustStop(tokens, standing(used, 500)))).toEqual([false, true]);
    const runs = { limit: 3, unit: "runs" as const };
    expect([3, 4].map((open) => mustStop(runs, standing(0, open)))).toEqual([false, true]);
  });

  it("blocks and stops nothing while no usage is measured", () => {
    const unknown = { used: 500, reserved: 0, unmeasured: true };
    expect([mayStart(tokens, unknown, 1), mustStop(tokens, unknown), classifyBudget(tokens, unknown)])
      .toEqual([
        true,
        false,
        "unmeasured",
      ]);
  });
});
