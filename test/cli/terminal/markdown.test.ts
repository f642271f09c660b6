import { describe, expect, it } from "vitest";
import { renderMarkdown } from "../../../cli/terminal/markdown.ts";
import type { Style } from "../../../cli/terminal/style.ts";

const mark = (name: string) => (text: string) => `<${name}>${text}</${name}>`;
const style = Object.fromEntries(
  ["bold", "dim", "red", "green", "yellow", "cyan"].map((name) => [name, mark(name)]),
) as Style;

describe("renderMarkdown()", () => {
  it.each([
    ["# Title #", "<bold>Title</bold>"],
    ["a **strong** word", "a <bold>strong</bold> word"],
    ["run `a ** b` now", "run <cyan>a ** b</cyan> now"],
    ["- one\n  * two", "• one\n  • two"],
    ["> said", "<dim>│ said</dim>"],
    ["[docs](https://example.org/x)", "docs (https://example.org/x)"],
    ["```sh\nls **\n```\nend", "  <cyan>ls **</cyan>\nend"],
    ["| a | b |\n|---|---:|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"],
    ["2 * 3 * 4, snake_case_name, a__b", "2 * 3 * 4, snake_case_name, a__b"],
    ["---", "---"],
  ])("%j", (text, shown) => expect(renderMarkdown(text, style)).toBe(shown));
});
