import { expect, it } from "vitest";
import { readText } from "../harness/house/tree.ts";
import { buildReliability, findProofs, readPromises } from "../reliability.ts";

const WITHOUT_TEST = /^(not proven|does not apply|measured)\b/;

it("docs/reliability.md equals the output of `make docs`", () => {
  expect(readText("docs/reliability.md")).toBe(buildReliability());
});

it("each promise has a test with its id or a reason, and each tag names a promise", () => {
  const promises = readPromises();
  const proven = new Set(findProofs().flatMap(({ ids }) => ids));
  const ids = promises.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(promises.filter(({ id, note }) => !proven.has(id) && !WITHOUT_TEST.test(note))).toEqual([]);
  expect([...proven].filter((id) => !ids.includes(id))).toEqual([]);
});
