import { type Fence, formatClosing, type MarkdownLine, scanMarkdown } from "../domain/chat/markdown.ts";
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
  const text = [trimBlankLines(content), note].filter((piece) => piece !== "").join("\n\n");
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
  return keepPair(text.slice(0, maxCharacters));
}

/**
 * Cuts a text between paragraphs, lines, sentences or words. Closes a code block at a cut and opens it again in the next piece. Pieces of
 * code keep their blank lines and indentation.
 */
export function cutText(content: string, maxCharacters: number): string[] {
  const pieces: string[] = [];
  let opening = "";
  let rest = trimBlankLines(content);
  while (rest !== "") {
    const text = opening + rest;
    const cut = findCut(text, opening.length, maxCharacters);
    const piece = text.slice(0, cut.at);
    rest = text.slice(cut.next);
    if (cut.closing !== "") pieces.push(piece + cut.closing);
    else {
      if (piece.trim() !== "") pieces.push(piece.trimEnd());
      rest = trimBlankLines(rest);
    }
    opening = cut.opening;
  }
  return pieces;
}

function trimBlankLines(text: string): string {
  return text.replace(/^(?:[ \t]*[\r\n])+/, "").trimEnd();
}

interface Cut {
  /** End of the piece. */
  at: number;
  /** Start of the next piece. */
  next: number;
  /** Line break and the line that closes the code block of the piece. "" outside of code. */
  closing: string;
  /** The line that opens the code block again. "" outside of code. */
  opening: string;
}

/** Finds the end of the first piece of a text. The first `openingLength` characters of the text open a code block again. */
function findCut(text: string, openingLength: number, maxCharacters: number): Cut {
  const lines = listLines(text, maxCharacters);
  const limits = { openingLength, maxCharacters };
  if (text.length <= maxCharacters) {
    const whole = buildCut(lines, text.length, limits);
    if (whole.at + whole.closing.length <= maxCharacters) return whole;
  }
  const closingMax = Math.max(
    ...lines.map(({ fence }) => fence === null ? 0 : formatClosing(fence).length + 1),
  );
  const window = text.slice(0, maxCharacters - closingMax);
  if (window.length > openingLength + 1) {
    const cut = buildCut(lines, findBreak(window, openingLength), limits);
    if (cut.at > openingLength && cut.at + cut.closing.length <= maxCharacters) return cut;
  }
  // There is no space for the lines that close and open the code block.
  const at = keepPair(text.slice(0, maxCharacters)).length;
  return { at, next: at, closing: "", opening: "" };
}

/** Lists the lines that start before a position. */
function listLines(text: string, before: number): MarkdownLine[] {
  const lines: MarkdownLine[] = [];
  for (const line of scanMarkdown(text)) {
    if (line.start >= before) break;
    lines.push(line);
  }
  return lines;
}

/** Moves a cut that is inside a line that opens or closes a code block. */
function buildCut(
  lines: readonly MarkdownLine[],
  at: number,
  { openingLength, maxCharacters }: { openingLength: number; maxCharacters: number },
): Cut {
  const index = lines.findLastIndex(({ start }) => start < at);
  const line = lines[index];
  if (line === undefined) return { at, next: at, closing: "", opening: "" };
  const isWithin = at < line.end;
  const isEmptyBlock = line.kind === "open" && line.next > line.end && at <= line.next;
  if (
    (isEmptyBlock || line.kind !== "code" && line.kind !== "text" && isWithin) && line.start > openingLength
  ) {
    return buildCut(lines, line.start, { openingLength, maxCharacters });
  }
  const { fence } = line;
  if (fence === null || line.kind === "close") return { at, next: at, closing: "", opening: "" };
  const closing = `\n${formatClosing(fence)}`;
  const opening = formatOpening(fence, maxCharacters);
  if (isWithin) return { at, next: at, closing, opening: opening === "" ? "" : opening + fence.prefix };
  const following = lines[index + 1];
  if (following?.kind === "close" && following.end <= maxCharacters) {
    return { at: following.end, next: following.next, closing: "", opening: "" };
  }
  // The code block ends here without a closing line.
  const isEnd = following !== undefined && following.fence !== fence;
  return { at: line.end, next: line.next, closing, opening: isEnd ? "" : opening };
}

// A longer text after the marks is not the name of a language. Every piece would repeat it.
const FENCE_MAX_CHARACTERS = 60;

function formatOpening(fence: Fence, maxCharacters: number): string {
  const short = formatClosing(fence);
  // A piece has no space for the lines that open and close the code block.
  if (4 * short.length > maxCharacters) return "";
  const line = `${short}${fence.info}`;
  return `${line.length > Math.min(FENCE_MAX_CHARACTERS, maxCharacters / 4) ? short : line}\n`;
}

function findBreak(window: string, openingLength: number): number {
  const least = Math.max(Math.floor(window.length / 2), openingLength + 1);
  for (const mark of ["\n\n", "\r\n\r\n", "\n", ". ", " "]) {
    const at = window.lastIndexOf(mark);
    if (at >= least) return at + mark.length;
  }
  return keepPair(window).length;
}

/** Drops the first half of a surrogate pair at the end. */
function keepPair(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, "");
}
