/** The first line of a code block, with what is needed to repeat it. */
export interface Fence {
  /** Start of every line of the fence: quote marks and indentation. */
  prefix: string;
  /** Backticks or tildes. */
  marks: string;
  /** The text after the marks: usually a language. */
  info: string;
  /** Number of quote marks before the fence. */
  depth: number;
  /** Characters between the quote marks and the fence. */
  indent: number;
}

export interface MarkdownLine {
  kind: "text" | "open" | "code" | "close";
  start: number;
  /** End of the line, without its line break. */
  end: number;
  /** Start of the next line. */
  next: number;
  /** Start of the text of a `code` line, without quote marks and the indentation of its fence. */
  from: number;
  quoted: boolean;
  /** The code block of the line. null for `text`. */
  fence: Fence | null;
}

// A longer row of marks, or a row that is indented further, counts as text: repeated in every piece, it would fill a message.
const OPEN =
  /((?:[ \t]{0,40}(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){0,8}[ \t]{0,40})(?:(`{3,32})(?!`)(?=[^`\r\n]*(?:[\r\n]|$))|(~{3,32})(?!~))([^\r\n]*)/y;
const QUOTE = /[ \t]{0,40}(?:(?:[-+*]|\d{1,9}[.)])[ \t]+){0,8}>/y;
const LIST_MARK = /[-+*]|\d{1,9}[.)]/g;
const CLOSING_INDENT = 3;

/**
 * Yields the lines of a Markdown text and finds its code blocks as CommonMark does: in quotes and lists, with tildes, with more than three
 * marks and with any line break. A block without an end extends to the end of its quote or of the text.
 */
export function* scanMarkdown(text: string): Generator<MarkdownLine> {
  let fence: Fence | null = null;
  const lineBreak = /\r\n?|\n/g;
  for (let start = 0; start < text.length;) {
    lineBreak.lastIndex = start;
    const found = lineBreak.exec(text);
    const end = found?.index ?? text.length;
    const next = found === null ? end : lineBreak.lastIndex;
    const place = { start, end, next };
    start = next;
    const inside: number = fence === null ? -1 : skipQuotes(text, place.start, end, fence.depth);
    if (fence !== null && inside !== -1) {
      const closes = isClosing(text.slice(inside, end), fence);
      const from = closes ? inside : skipIndent(text, inside, Math.min(end, inside + fence.indent));
      yield { ...place, kind: closes ? "close" : "code", from, quoted: fence.depth > 0, fence };
      if (closes) fence = null;
      continue;
    }
    fence = parseOpening(text, place.start);
    if (fence !== null) {
      yield { ...place, kind: "open", from: place.start, quoted: fence.depth > 0, fence };
      continue;
    }
    QUOTE.lastIndex = place.start;
    yield { ...place, kind: "text", from: place.start, quoted: QUOTE.test(text), fence };
  }
}

/** Returns the line that closes the code block of a fence. */
export function formatClosing({ prefix, marks }: Fence): string {
  return `${prefix}${marks}`;
}

function parseOpening(text: string, start: number): Fence | null {
  OPEN.lastIndex = start;
  const found = OPEN.exec(text);
  if (found === null) return null;
  const [, before = "", ticks, tildes, info = ""] = found;
  const afterQuotes = before.slice(before.lastIndexOf(">") + 1);
  const depth = before.split(">").length - 1;
  return {
    // A list mark would start another item.
    prefix: before.replace(LIST_MARK, (mark) => " ".repeat(mark.length)),
    marks: ticks ?? tildes ?? "",
    info: info.trimEnd(),
    depth,
    indent: depth > 0 ? afterQuotes.replace(/^[ \t]/, "").length : afterQuotes.length,
  };
}

/** Returns the position after this number of quote marks, or -1. */
function skipQuotes(text: string, start: number, end: number, depth: number): number {
  let at = start;
  for (let quote = 0; quote < depth; quote++) {
    at = skipIndent(text, at, end);
    if (text[at] !== ">" || at >= end) return -1;
    at = skipIndent(text, at + 1, Math.min(end, at + 2));
  }
  return at;
}

function skipIndent(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && (text[at] === " " || text[at] === "\t")) at++;
  return at;
}

function isClosing(line: string, { marks, indent }: Fence): boolean {
  const at = skipIndent(line, 0, line.length);
  if (at > indent + CLOSING_INDENT || !line.startsWith(marks, at)) return false;
  const rest = line.slice(at).trimEnd();
  return [...rest].every((character) => character === marks[0]);
}
