import { expect, it } from "vitest";
import { formatUntil } from "../../console/parts/format.ts";

const DAY = 86_400_000;

it.each([[0.25, "in 6 h"], [6.9, "in 7 d"], [7.25, "in 7 d"], [14, "in 14 d"], [400, "in 400 d"]])(
  "formatUntil() formats a time in %d days",
  (days, text) => {
    expect(formatUntil(days * DAY, 0)).toBe(text);
  },
);
