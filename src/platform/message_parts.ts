import type { Media } from "../domain/chat/message.ts";
import type { Limits } from "./manifest.ts";
import type { Part } from "./platform.ts";

// A longer reply becomes a file. On a platform without files, the rest is dropped.
const PARTS_MAX = 4;
const BEGINNING_CHARACTERS = 600;
const FILE_NAME = "reply.md";

/** Cuts a reply into parts: first its text, cut or as a file, then its file. */
export function cutReply(content: string, media: Media | null, limits: Limits): Part[] {
  const tooLarge = media !== null && media.size > limits.fileBytes;
  const note = tooLarge
    ? `[the file ${media.original_name} is too large for this chat; it is in the service]`
    : "";
  const text = [content.trim(), note].filter((piece) => piece !== "").join("\n\n");
  return [...cutIntoParts(text, limits), ...(media === null || tooLarge ? [] : [{ text: "", media }])];
}

function cutIntoParts(text: string, { characters, fileBytes }: Limits): Part[] {
  const pieces = cutText(text, characters);
  if (pieces.length <= PARTS_MAX) return pieces.map((piece) => ({ text: piece, media: null }));
  if (fileBytes === 0) {
    const shown = pieces.slice(0, PARTS_MAX).map((piece) => ({ text: piece, media: null }));
    return [...shown, { text: "[the rest is too long for this chat]", media: null }];
  }
  const [beginning = ""] = cutText(text, BEGINNING_CHARACTERS);
  return [
    { text: `${beginning}\n\n[continued in the file ${FILE_NAME}]`, media: null },
    { text, media: null, asFile: FILE_NAME },
  ];
}

/** Cuts a label or text without splitting a surrogate pair. */
export function truncate(text: string, maxCharacters: number): string {
  return text.slice(0, maxCharacters).replace(/[\ud800-\udbff]$/, "");
}

/** Cuts a text at paragraphs, lines, sentences or words. Closes a code block at a cut and opens it again. */
export function cutText(content: string, maxCharacters: number): string[] {
  const pieces: string[] = [];
  let rest = content.trim();
  let fence = "";
  while (rest !== "") {
    const head = fence + rest;
    if (head.length <= maxCharacters) return [...pieces, head];
    const at = findCut(head.slice(0, maxCharacters - 4), fence.length);
    const piece = head.slice(0, at);
    rest = head.slice(at).replace(/^\n+/, "");
    const open = findOpenFence(piece);
    fence = open === null ? "" : `${open}\n`;
    pieces.push(open === null ? piece.trimEnd() : `${piece.trimEnd()}\n\`\`\``);
  }
  return pieces;
}

function findCut(text: string, fenceLength: number): number {
  const least = Math.max(Math.floor(text.length / 2), fenceLength + 1);
  for (const mark of ["\n\n", "\n", ". ", " "]) {
    const at = text.lastIndexOf(mark);
    if (at >= least) return at + (mark === ". " ? 2 : mark.length);
  }
  // Keeps a surrogate pair together.
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
}

// A longer first line names no language and would be repeated in every piece.
const FENCE_MAX_CHARACTERS = 60;

/** Finds the first line of a code block without an end. */
function findOpenFence(text: string): string | null {
  let open: string | null = null;
  for (const line of text.split("\n")) {
    if (/^```/.test(line)) open = open === null ? line : null;
  }
  return open !== null && open.length > FENCE_MAX_CHARACTERS ? "```" : open;
}
