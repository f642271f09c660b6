import { expect, it } from "vitest";
import { clampUsage, USAGE_UNKNOWN } from "../../src/domain/work/execution.ts";
import { UsageCounter } from "../../src/engine/protocol/usage_count.ts";

it("limits figures that are too large, and treats broken figures as unknown (contract 14)", () => {
  expect(clampUsage({ input_tokens: 9e18, output_tokens: -5, cost_usd: 1e10 }))
    .toEqual({ input_tokens: 1e12, output_tokens: 0, cost_usd: 1e4 });
  expect(clampUsage({ input_tokens: 1.5, output_tokens: NaN, cost_usd: Infinity }))
    .toEqual({ input_tokens: 2, output_tokens: null, cost_usd: null });
  const count = new UsageCounter(USAGE_UNKNOWN);
  count.add("step", { input_tokens: 10, cost_usd: 0.1 }, "a");
  count.add("step", { input_tokens: 1e300, output_tokens: -1, cost_usd: 0.2 }, "a");
  expect(count.run).toEqual({ input_tokens: 1e12, output_tokens: 0, cost_usd: 0.2 });
});

it("remembers a bounded number of steps with bounded names [CHD-6]", () => {
  const count = new UsageCounter(USAGE_UNKNOWN);
  const step = (name: string) => count.add("step", { input_tokens: 1 }, name);
  for (let no = 0; no < 1_001; no++) step(`step ${no}`);
  step("step 1000");
  expect(count.run.input_tokens).toBe(1_001);
  // The first step is forgotten and counts like a new one.
  step("step 0");
  expect(count.run.input_tokens).toBe(1_002);
  for (const end of ["a", "b"]) step(`${"x".repeat(1_000_000)}${end}`);
  expect(count.run.input_tokens).toBe(1_003);
});
