import type { Style } from "./style.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Renders Markdown for a terminal: headings and strong words bold, code colored and without its marks, links as text with
 * address, tables without their line of dashes. Escape control characters first. Every other text stays as it is.
 */
export function renderMarkdown(text: string, style: Style): string {
  const lines: string[] = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1] ?? "";
    if (fence !== "") {
      if (mark.startsWith(fence)) fence = "";
      else lines.push(`  ${style.cyan(line)}`);
    } else if (mark !== "") fence = mark;
    else if (!/^\s*\|?(\s*:?-{3,}:?\s*\|)+(\s*:?-{3,}:?\s*)?\|?\s*$/.test(line)) {
      lines.push(renderLine(line, style));
    }
  }
  return lines.join("\n");
}

function renderLine(line: string, style: Style): string {
  const heading = /^ {0,3}#{1,6} +(.*?) *#*$/.exec(line)?.[1];
  if (heading !== undefined) return style.bold(renderSpans(heading, style));
  const quote = /^ {0,3}> ?(.*)$/.exec(line)?.[1];
  if (quote !== undefined) return style.dim(`│ ${renderSpans(quote, style)}`);
  const [, indent = "", item] = /^(\s*)[-*+] +(.*)$/.exec(line) ?? [];
  return item === undefined ? renderSpans(line, style) : `${indent}• ${renderSpans(item, style)}`;
}

// Code first, since the marks inside of it mean nothing.
function renderSpans(line: string, style: Style): string {
  return line.split(/(`+[^`]+`+)/).map((piece, at) =>
    at % 2 === 1 ? style.cyan(piece.replace(/^`+|`+$/g, "")) : piece
      .replace(
        /\[([^\]]+)\]\((https?:[^)\s]+)\)/g,
        (_, words, address) => words === address ? address : `${words} (${address})`,
      )
      .replace(/(\*\*|__)(?=\S)(.+?)(?<=\S)\1/g, (_, _mark, words) => style.bold(words))
  ).join("");
}
