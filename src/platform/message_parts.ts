import type { Media } from "../domain/chat/message.ts";
import type { Part } from "./platform.ts";

/** What a platform takes at once. */
interface Limits {
  /** Of one message, with room for the marks of its dialect. */
  characters: number;
  /** Of one file; 0 when it takes none. */
  fileBytes: number;
}

// A longer reply goes as a file, or ends there where there are no files (contract 10.3).
const PARTS_MAX = 4;
const BEGINNING_CHARACTERS = 600;
const FILE_NAME = "reply.md";

/** A reply as the parts that are sent one after the other: its text, cut or as a file where it is too long, then its file (contract 10.3). */
export function partsOf(content: string, media: Media | null, limits: Limits): Part[] {
  const tooLarge = media !== null && media.size > limits.fileBytes;
  const note = tooLarge
    ? `[the file ${shownName(media)} is too large for this chat and stays in the service]`
    : "";
  const text = [content.trim(), note].filter((piece) => piece !== "").join("\n\n");
  return [...textParts(text, limits), ...(media === null || tooLarge ? [] : [{ text: "", media }])];
}

/** The name that a stored file is shown under: without the id in front. */
export function shownName({ name }: Pick<Media, "name">): string {
  return name.replace(/^[0-9a-f]{8}-[0-9a-f-]{27}-/, "");
}

function textParts(text: string, { characters, fileBytes }: Limits): Part[] {
  const pieces = cutText(text, characters);
  if (pieces.length <= PARTS_MAX) return pieces.map((piece) => ({ text: piece, media: null }));
  if (fileBytes === 0) {
    const shown = pieces.slice(0, PARTS_MAX).map((piece) => ({ text: piece, media: null }));
    return [...shown, { text: "[the rest is too long for this chat and is left out]", media: null }];
  }
  const [beginning = ""] = cutText(text, BEGINNING_CHARACTERS);
  return [
    { text: `${beginning}\n\n[this goes on: all of it is in the file ${FILE_NAME}]`, media: null },
    { text, media: null, asFile: FILE_NAME },
  ];
}

/** So many characters of a label or text; one whose halves do not both fit is left out. */
export function beginningOf(text: string, maxCharacters: number): string {
  return text.slice(0, maxCharacters).replace(/[\ud800-\udbff]$/, "");
}

/** A text in pieces: cut at a paragraph, a line, a sentence or a word; a code block is closed and opened again. */
export function cutText(content: string, maxCharacters: number): string[] {
  const pieces: string[] = [];
  let rest = content.trim();
  let fence = "";
  while (rest !== "") {
    const head = fence + rest;
    if (head.length <= maxCharacters) return [...pieces, head];
    const at = cutAt(head.slice(0, maxCharacters - 4), fence.length);
    const piece = head.slice(0, at);
    rest = head.slice(at).replace(/^\n+/, "");
    const open = openFence(piece);
    fence = open === null ? "" : `${open}\n`;
    pieces.push(open === null ? piece.trimEnd() : `${piece.trimEnd()}\n\`\`\``);
  }
  return pieces;
}

function cutAt(text: string, fenceLength: number): number {
  const least = Math.max(Math.floor(text.length / 2), fenceLength + 1);
  for (const mark of ["\n\n", "\n", ". ", " "]) {
    const at = text.lastIndexOf(mark);
    if (at >= least) return at + (mark === ". " ? 2 : mark.length);
  }
  // Never between the halves of one character.
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
}

// A longer first line is no name of a language, and would be repeated in every piece.
const FENCE_MAX_CHARACTERS = 60;

/** The line that opened a code block which is not closed, or null. */
function openFence(text: string): string | null {
  let open: string | null = null;
  for (const line of text.split("\n")) {
    if (/^```/.test(line)) open = open === null ? line : null;
  }
  return open !== null && open.length > FENCE_MAX_CHARACTERS ? "```" : open;
}
