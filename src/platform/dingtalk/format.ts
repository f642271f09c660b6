import { scanMarkdown } from "../../domain/chat/markdown.ts";
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
  const lines = [...scanMarkdown(text)];
  return lines.map(({ kind, start, end, next }, at) => {
    const line = text.slice(start, end);
    const following = lines[at + 1];
    const isBroken = kind === "text" && line !== "" && following?.kind === "text" &&
      following.start < following.end;
    return `${line}${isBroken ? "  " : ""}${text.slice(end, next)}`;
  }).join("");
}
