import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { readBody } from "../../../src/http/input.ts";
import { BodyBudget, type CountedBody } from "../../../src/http/server/body_budget.ts";

interface Sender {
  body: CountedBody;
  refused: () => boolean;
}

function open(budget: BodyBudget, bytes: number): Sender {
  const body = budget.open();
  let refused = false;
  body.onRefused = () => refused = true;
  body.take(bytes);
  return { body, refused: () => refused };
}

describe("BodyBudget [BYT-3]", () => {
  it("accepts bodies up to exactly its limit, and refuses the largest at one byte more", () => {
    const budget = new BodyBudget(100);
    const [small, large, middle] = [open(budget, 20), open(budget, 50), open(budget, 30)];
    expect(budget.bytes).toBe(100);
    expect([small, large, middle].map(({ refused }) => refused())).toEqual([false, false, false]);
    small.body.take(1);
    expect([small, large, middle].map(({ refused }) => refused())).toEqual([false, true, false]);
    expect(budget.bytes).toBe(51);
  });

  it("refuses the body that would become as large as the largest one", () => {
    const budget = new BodyBudget(100);
    const [first, second] = [open(budget, 55), open(budget, 40)];
    expect(() => second.body.take(15)).toThrow("too many bodies");
    expect([first.refused(), second.refused(), budget.bytes]).toEqual([false, true, 55]);
  });

  it("refuses no body that has arrived, even if it is the largest one", () => {
    const budget = new BodyBudget(100);
    const [whole, arriving] = [open(budget, 80), open(budget, 20)];
    whole.body.complete = true;
    const login = open(budget, 5);
    expect([whole, arriving, login].map(({ refused }) => refused())).toEqual([false, true, false]);
    expect(budget.bytes).toBe(85);
    login.body.complete = true;
    expect(() => open(budget, 16)).toThrow("too many bodies");
  });

  it("knows when a body has arrived and is handled", async () => {
    const budget = new BodyBudget(100_000);
    const body = budget.open();
    const request = new Request("http://localhost/", { method: "POST", body: "x".repeat(80_000) });
    expect(await readBody(request, 90_000, systemClock, body)).toHaveLength(80_000);
    const bytes = budget.bytes;
    expect(bytes).toBeGreaterThanOrEqual(80_000);
    const other = open(budget, 10);
    expect(() => other.body.take(100_000 - bytes - 9)).toThrow("too many bodies");
    expect(budget.bytes).toBe(bytes);
  });

  it("releases the bytes of a body once, however often it is closed", () => {
    const budget = new BodyBudget(100);
    const [kept, closed] = [open(budget, 10), open(budget, 60)];
    open(budget, 31);
    expect([closed.refused(), budget.bytes]).toEqual([true, 41]);
    closed.body.close();
    closed.body.close();
    expect(budget.bytes).toBe(41);
    kept.body.close();
    expect(budget.bytes).toBe(31);
  });

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
