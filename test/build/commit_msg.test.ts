import { expect, it } from "vitest";
import { findSubjectProblem } from "../../build/commit_msg.ts";

it.each([
  "outbox: retry a refused reply once",
  "cli, console: rename lanes",
  'Revert "outbox: retry"',
  "Merge branch 'docs'",
  `a: ${"x".repeat(69)}`,
])("findSubjectProblem() accepts %s", (subject) => {
  expect(findSubjectProblem(subject)).toBe("");
});

it.each([
  ["outbox retry a refused reply", "<area>"],
  ["outbox: ", "<area>"],
  ["Outbox: retry", "<area>"],
  ["outbox: retry.", "<area>"],
  ["", "<area>"],
  [`a: ${"x".repeat(70)}`, "73 characters"],
  ["review: fix a race", "review"],
])("findSubjectProblem() refuses %s", (subject, words) => {
  expect(findSubjectProblem(subject)).toContain(words);
});
