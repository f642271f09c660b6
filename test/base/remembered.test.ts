import { expect, it } from "vitest";
import { memoize } from "../../src/base/memoize.ts";

it("remembered computes each of the last `max` texts once", () => {
  const asked: string[] = [];
  const length = memoize(2, (text) => {
    asked.push(text);
    return [text.length];
  });
  expect(["a", "bb", "a", "ccc", "a", "bb"].map(length)).toEqual([[1], [2], [1], [3], [1], [2]]);
  expect(asked).toEqual(["a", "bb", "ccc", "bb"]);
});
