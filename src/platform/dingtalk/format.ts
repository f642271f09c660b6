import { type Dialect, MARKDOWN, translateMarkdown } from "../markdown.ts";

const TITLE_CHARACTERS = 40;

/** DingTalk reads Markdown, without escapes. */
const DINGTALK_MARKDOWN: Dialect = {
  ...MARKDOWN,
  escape: (text) => text,
  strike: (text) => text,
};

/** Formats a text with a title for lists and notifications. */
export function formatWithTitle(text: string): { title: string; text: string } {
  const line = text.split("\n").find((one) => one.trim() !== "") ?? "";
  const title = line.replace(/[#*`>~[\]]/g, "").trim().slice(0, TITLE_CHARACTERS).toWellFormed();
  return { title: title || "…", text: addLineEnds(translateMarkdown(text, DINGTALK_MARKDOWN)) };
}

// Outside of code, a line break needs two blanks.
function addLineEnds(text: string): string {
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
