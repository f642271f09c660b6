import { expect, it } from "vitest";
import { findMisspelledMention } from "../../console/pages/chat/misspelled_mention.ts";
import { findErrorLine } from "../../console/pages/work/log_errors.ts";
import { formatPreview } from "../../console/parts/plain_text.ts";

it("a preview has the text of Markdown without its signs", () => {
  const markdown =
    "# Report\n\n- **Sign-ups** are *up*\n- [x] see `47.md` and [the page](https://example.org)\n\n" +
    "| Week | Visits |\n|---|---|\n| 46 | 10 |\n\n```ts\nconst a = 2 * 3 * 4;\n```\n> quoted \x1b[31mred\x1b[0m";
  expect(formatPreview(markdown)).toBe(
    "Report Sign-ups are up see 47.md and the page Week · Visits 46 · 10 const a = 2 * 3 * 4; quoted red",
  );
  expect(formatPreview("snake_case_name and 2*3*4")).toBe("snake_case_name and 2*3*4");
  expect(formatPreview("line one\r\nline two")).toBe("line one line two");
});

it("a mention is misspelled only if it is close to a name", () => {
  const names = ["Shouty", "Ada", "Release notes"];
  const find = (text: string) => findMisspelledMention(text, names)?.meant ?? null;
  expect(find("@Shoty hello")).toBe("Shouty");
  expect(find("please ask @Shuoty")).toBe("Shouty");
  expect(find("@Adda hello")).toBe("Ada");
  for (
    const text of [
      ...["@Ada hello", "@shouty hello", "@Release notes for 4.2", "@Ada's turn", "@everyone", "@types/node"],
      ...["mail shoty@shoty.org", "`@Shoty`", "> @Shoty", "```\n@Shoty\n```"],
    ]
  ) expect([text, find(text)]).toEqual([text, null]);
});

it("the error of a log is the start of its last group of error lines, and no summary without errors", () => {
  const stamp = "2026-11-26T12:00:00.000Z ";
  const log = (...lines: string[]) => findErrorLine(lines.map((line) => stamp + line));
  expect(log("ok", "error: early", "ok", "FAIL one", "Error: two", "cleaning up", "[exit code 1]")).toBe(3);
  expect(log("done", "0 errors, 0 failures", "no errors")).toBe(undefined);
  expect(log("ok", "! engine: overloaded", "bye")).toBe(1);
  expect(log("[failed: exit code 1]")).toBe(undefined);
});
