import { describe, expect, it } from "vitest";
import { computeProgressDueMs, formatProgress, formatStep } from "../../src/domain/work/progress.ts";

describe("progress on platforms (contract 10.6)", () => {
  const doing = { since: 0, isDirect: true, text: "Ada works on it …" };

  it("appears after 5 s, then with news every 3 s, in groups every 10 s, and at most 15 times", () => {
    expect(computeProgressDueMs(doing, null, 4_999)).toBe(1);
    expect(computeProgressDueMs(doing, null, 5_000)).toBe(0);
    const shown = { text: "before", edits: 0, edited_at: 5_000 };
    expect(computeProgressDueMs(doing, shown, 7_999)).toBe(1);
    expect(computeProgressDueMs(doing, shown, 8_000)).toBe(0);
    expect(computeProgressDueMs({ ...doing, isDirect: false }, shown, 14_999)).toBe(1);
    expect(computeProgressDueMs({ ...doing, isDirect: false }, shown, 15_000)).toBe(0);
    expect(computeProgressDueMs(doing, { ...shown, edits: 14 }, 99_000)).toBe(0);
    expect(computeProgressDueMs(doing, { ...shown, edits: 15 }, 99_000)).toBe(Infinity);
    expect(computeProgressDueMs(doing, { ...shown, text: doing.text }, 99_000)).toBe(Infinity);
    expect(computeProgressDueMs({ ...doing, text: "" }, null, 99_000)).toBe(Infinity);
  });

  it("names the workers and the latest steps, in three lines", () => {
    expect(formatProgress([])).toBe("");
    expect(formatProgress([{ worker: "Ada", steps: [] }])).toBe("Ada works on it …");
    const two = [{ worker: "Ada", steps: ["a", "b"] }, { worker: "Bob", steps: ["c"] }];
    expect(formatProgress(two)).toBe("Ada, Bob work on it …\nb\nc");
  });

  it.each([
    ["Bash", "npm test\n && ls", "Runs npm test && ls"],
    ["read_file", "src/a.ts", "Reads src/a.ts"],
    ["Edit", "src/a.ts", "Writes src/a.ts"],
    ["WebSearch", "weather", "Searches the web for weather"],
    ["mcp__svc__ask", "", "Uses mcp__svc__ask"],
    ["Bash", "x".repeat(200), `Runs ${"x".repeat(114)}…`],
  ])("%s %s", (tool, input, words) => expect(formatStep(tool, input)).toBe(words));
});
