import { expect, it } from "vitest";
import { sane, USAGE_UNKNOWN } from "../../src/domain/execution.ts";
import { UsageCount } from "../../src/engine/usage_count.ts";

it("figures out of all bounds are brought back, and broken ones are unknown (contract 14)", () => {
  expect(sane({ input_tokens: 9e18, output_tokens: -5, cost_usd: 1e10 }))
    .toEqual({ input_tokens: 1e12, output_tokens: 0, cost_usd: 1e4 });
  expect(sane({ input_tokens: 1.5, output_tokens: NaN, cost_usd: Infinity }))
    .toEqual({ input_tokens: 2, output_tokens: null, cost_usd: null });
  const count = new UsageCount(USAGE_UNKNOWN);
  count.add("step", { input_tokens: 10, cost_usd: 0.1 }, "a");
  count.add("step", { input_tokens: 1e300, output_tokens: -1, cost_usd: 0.2 }, "a");
  expect(count.run).toEqual({ input_tokens: 1e12, output_tokens: 0, cost_usd: 0.2 });
});
