import { type Fence, scanMarkdown } from "./markdown.ts";

type Range = readonly [start: number, end: number];

// Replaces each hidden character, because no name contains it.
const HIDDEN = "\0";
// Each code block without a closing line causes another scan of the rest of the text. After this many characters, the rest is hidden as
// code.
const SCANNED_CHARACTERS = 300_000;
const BLOCK_TICKS = 3;

/**
 * Hides code and quotes, because a mention in them addresses no worker. Every other character keeps its position. On Slack and Discord, a
 * code block can also end inside a line.
 */
export function hideCodeAndQuotes(text: string): string {
  if (!/[`~>]/.test(text)) return text;
  let shown = "";
  let rest = text;
  for (let scanned = 0; scanned === 0 || scanned + rest.length <= SCANNED_CHARACTERS;) {
    scanned += rest.length;
    const { ranges, unclosed } = findBlocks(rest);
    if (unclosed === null) return shown + hideSpans(hide(rest, ranges));
    const before = hide(rest.slice(0, unclosed.start), ranges);
    const block = findInlineBlock(before, rest, unclosed);
    if (block === null) return shown + hideSpans(before) + HIDDEN.repeat(rest.length - before.length);
    const [start, end] = block;
    shown += hideSpans(before.slice(0, start)) + HIDDEN.repeat(end - start);
    rest = rest.slice(end);
  }
  return shown + HIDDEN.repeat(rest.length);
}

interface Unclosed {
  start: number;
  end: number;
  fence: Fence;
}

/** Finds quotes and complete code blocks. If a code block has no end, also finds its first line. */
function findBlocks(text: string): { ranges: Range[]; unclosed: Unclosed | null } {
  const ranges: Range[] = [];
  let opening: Unclosed | null = null;
  let closedUpTo = 0;
  for (const { kind, start, end, quoted, fence } of scanMarkdown(text)) {
    if (quoted && kind === "text") {
      // Slack and Discord quote everything after three quote marks.
      const isLong = /^ {0,3}>>>(?!>)/.test(text.slice(start, start + 7));
      ranges.push([start, isLong ? text.length : end]);
      if (isLong) return { ranges, unclosed: null };
    } else if (kind === "text") opening = null;
    else {
      if (kind === "open" && fence !== null) [opening, closedUpTo] = [{ start, end, fence }, ranges.length];
      if (kind === "close") opening = null;
      ranges.push([start, end]);
    }
  }
  if (opening === null || opening.fence.depth > 0) return { ranges, unclosed: null };
  return { ranges: ranges.slice(0, closedUpTo), unclosed: opening };
}

/** Finds a block inside a line, of which the scanner took the closing or the opening backticks for the start of a block without an end. */
function findInlineBlock(before: string, text: string, { start, end, fence }: Unclosed): Range | null {
  const { marks } = fence;
  if (!marks.startsWith("`")) return null;
  const earlier = findRuns(before).filter(({ length }) => length === marks.length);
  const marksEnd = text.indexOf(marks, start) + marks.length;
  const first = earlier.at(-1);
  if (first !== undefined && earlier.length % 2 === 1 && marksEnd <= end) return [first.at, marksEnd];
  const run = new RegExp(`(?<!\`)${marks}(?!\`)`, "g");
  run.lastIndex = marksEnd;
  return run.exec(text) === null ? null : [start, run.lastIndex];
}

function hide(text: string, ranges: readonly Range[]): string {
  let shown = "";
  let done = 0;
  for (const [start, end] of ranges) {
    if (start >= text.length) break;
    shown += text.slice(done, start) + HIDDEN.repeat(end - start);
    done = end;
  }
  return shown + text.slice(done);
}

interface Run {
  at: number;
  length: number;
}

function findRuns(text: string): Run[] {
  return Array.from(text.matchAll(/`+/g), ({ index, 0: run }) => ({ at: index, length: run.length }));
}

/**
 * Hides code between two runs of backticks of the same length. Code between fewer than three backticks ends with its paragraph at the
 * latest.
 */
function hideSpans(text: string): string {
  const runs = findRuns(text);
  const partners = findPartners(runs);
  const paragraphEnds = Array.from(text.matchAll(/\n[ \t\r]*(?=\n)|\0+/g), ({ index }) => index);
  const ranges: Range[] = [];
  for (let at = 0, paragraph = 0; at < runs.length; at++) {
    const run = runs[at];
    const partner = partners[at];
    const last = runs[partner ?? -1];
    if (run === undefined || partner === undefined || last === undefined) continue;
    if (text[run.at - 1] === "\\") continue;
    while ((paragraphEnds[paragraph] ?? Infinity) < run.at) paragraph++;
    if (run.length < BLOCK_TICKS && (paragraphEnds[paragraph] ?? Infinity) < last.at) continue;
    ranges.push([run.at, last.at + last.length]);
    at = partner;
  }
  return hide(text, ranges);
}

/** Returns, for each run, the index of the next run of the same length. */
function findPartners(runs: readonly Run[]): (number | undefined)[] {
  const following = new Map<number, number>();
  const partners: (number | undefined)[] = new Array(runs.length);
  for (let at = runs.length - 1; at >= 0; at--) {
    const length = runs[at]?.length ?? 0;
    partners[at] = following.get(length);
    following.set(length, at);
  }
  return partners;
}
