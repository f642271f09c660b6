import { expect, it } from "vitest";
import { formatTotal, formatUntil } from "../../console/parts/format.ts";

const DAY = 86_400_000;

it.each([[0.25, "in 6 h"], [6.9, "in 7 d"], [7.25, "in 7 d"], [14, "in 14 d"], [400, "in 400 d"]])(
  "formatUntil() formats a time in %d days",
  (days, text) => {
    expect(formatUntil(days * DAY, 0)).toBe(text);
  },
);

it.each([["0", "0"], ["999", "999"], ["2006", "2,006"], ["10000+", "10,000+"], ["1234567", "1,234,567"]])(
  "formatTotal() separates the thousands of %s",
  (total, text) => {
    expect(formatTotal(total)).toBe(text);
  },
);
