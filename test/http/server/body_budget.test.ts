import { describe, expect, it } from "vitest";
import { BodyBudget } from "../../../src/http/server/body_budget.ts";

describe("BodyBudget", () => {
  it("counts no more bytes of a body that was refused for another one", () => {
    const budget = new BodyBudget(100);
    const large = budget.open();
    large.take(80);
    const small = budget.open();
    small.take(30);
    // A piece that had arrived before the refusal.
    expect(() => large.take(20)).toThrow("too many bodies");
    large.close();
    small.close();
    expect(budget.bytes).toBe(0);
  });

  it("counts no more bytes of a body that was closed", () => {
    const budget = new BodyBudget(100);
    const body = budget.open();
    body.close();
    expect(() => body.take(20)).toThrow("too many bodies");
    expect(budget.bytes).toBe(0);
  });
});
