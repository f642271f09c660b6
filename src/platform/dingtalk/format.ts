import { type Dialect, inDialect, MARKDOWN } from "../markdown.ts";

const TITLE_CHARACTERS = 40;

/** DingTalk reads Markdown itself, and has no mark that takes another one away. */
const DINGTALK_MARKDOWN: Dialect = {
  ...MARKDOWN,
  escape: (text) => text,
  strike: (text) => text,
};

/** A text as DingTalk shows it, with the title that stands in lists and notifications. */
export function markdownOf(text: string): { title: string; text: string } {
  const line = text.split("\n").find((one) => one.trim() !== "") ?? "";
  const title = line.replace(/[#*`>~[\]]/g, "").trim().slice(0, TITLE_CHARACTERS).toWellFormed();
  return { title: title || "…", text: withLineEnds(inDialect(text, DINGTALK_MARKDOWN)) };
}

// A line that goes on with another one needs two blanks at its end, but not in code.
function withLineEnds(text: string): string {
  const lines = text.split("\n");
  let isCode = false;
  return lines.map((line, at) => {
    if (line.startsWith("```")) {
      isCode = !isCode;
      return line;
    }
    const next = lines[at + 1] ?? "";
    return isCode || line === "" || next === "" || next.startsWith("```") ? line : `${line}  `;
  }).join("\n");
}
