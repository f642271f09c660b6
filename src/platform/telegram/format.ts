import type { Part } from "../platform.ts";

// Telegram takes 4,096 after its marks are taken off; some room is left for those.
const PART_CHARACTERS = 3_600;
// A longer reply is cut off at so many parts, and says so.
const PARTS_MAX = 20;

/** A reply in parts of at most PART_CHARACTERS: cut at a paragraph, a line, a sentence or a word; a code block is closed and opened again. */
export function cutText(content: string): Part[] {
  const parts: string[] = [];
  let rest = content.trim();
  let fence = "";
  while (rest !== "" && parts.length < PARTS_MAX) {
    const head = fence + rest;
    if (head.length <= PART_CHARACTERS) {
      parts.push(head);
      rest = "";
      break;
    }
    const at = cutAt(head.slice(0, PART_CHARACTERS - 4));
    let piece = head.slice(0, at);
    rest = head.slice(at).replace(/^\n+/, "");
    const open = openFence(piece);
    fence = open === null ? "" : `${open}\n`;
    if (open !== null) piece = `${piece.trimEnd()}\n\`\`\``;
    parts.push(piece.trimEnd());
  }
  if (rest !== "") parts.push("[the rest is too long for this chat and is left out]");
  return parts.map((text) => ({ text, media: null }));
}

function cutAt(text: string): number {
  const least = Math.floor(text.length / 2);
  for (const mark of ["\n\n", "\n", ". ", " "]) {
    const at = text.lastIndexOf(mark);
    if (at >= least) return at + (mark === ". " ? 2 : mark.length);
  }
  // Never between the halves of one character.
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
}

/** The line that opened a code block which is not closed, or null. */
function openFence(text: string): string | null {
  let open: string | null = null;
  for (const line of text.split("\n")) {
    if (/^```/.test(line)) open = open === null ? line : null;
  }
  return open;
}

/** Markdown as Telegram's HTML: code, bold, italic, strike and links; everything else as it is. What is not closed stays text. */
export function toHtml(markdown: string): string {
  return markdown.split(/(```[^\n]*\n[\s\S]*?(?:\n```|```)(?=\n|$))/).map((piece, at) =>
    at % 2 === 1
      ? block(piece)
      : piece.split(/(`[^`\n]+`)/).map((one, index) =>
        index % 2 === 1 ? `<code>${escaped(one.slice(1, -1))}</code>` : inline(one)
      ).join("")
  ).join("");
}

function block(piece: string): string {
  const text = piece.replace(/^```[^\n]*\n/, "").replace(/\n?```$/, "");
  return `<pre>${escaped(text)}</pre>`;
}

function inline(text: string): string {
  return escaped(text)
    .replace(/^#{1,6} +([^\n]+)$/gm, "<b>$1</b>")
    .replace(/\*\*(?=\S)([^*\n]+?)\*\*/g, "<b>$1</b>")
    .replace(/(?<![\w*])\*(?=\S)([^*\n]+?)\*(?![\w*])/g, "<i>$1</i>")
    .replace(/~~(?=\S)([^~\n]+?)~~/g, "<s>$1</s>")
    .replace(/\[([^\]\n]+)\]\((https?:\/\/[^\s)"]+)\)/g, '<a href="$2">$1</a>');
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
