import type { Candidate } from "./candidates.ts";
import { countCells, truncate } from "../terminal/table.ts";

/** A line of bash up to the cursor. */
interface BashLine {
  /** The words without quotes. The last one is under the cursor. */
  words: string[];
  /** The open quote at the cursor, or "". */
  quote: string;
  /** The part of the last word that bash keeps. A reply follows it. */
  typedPrefix: string;
}

/**
 * Splits a line into words by quotes and backslashes only: `$(…)`, backquotes and variables are text. `breaks` is
 * COMP_WORDBREAKS: bash starts a new word after each of its characters. Returns null if the last word has a closed
 * quote, since no reply could follow it.
 */
export function parseBashLine(line: string, breaks: string): BashLine | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  let kept = "";
  // Whether the current word has a closed quote.
  let closed = false;
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? "";
    if (quote === "" && /[ \t\n]/.test(character)) {
      if (word !== null) words.push(word);
      word = null;
      kept = "";
      closed = false;
    } else if (quote === "" && (character === "'" || character === '"')) {
      quote = character;
      word ??= "";
      kept = word;
    } else if (character === quote) {
      quote = "";
      closed = true;
    } else if (character === "\\" && quote !== "'") {
      word = (word ?? "") + (line[++at] ?? "");
    } else {
      word = (word ?? "") + character;
      if (quote === "" && breaks.includes(character)) kept = word;
    }
  }
  if (closed && word !== null) return null;
  return { words: [...words, word ?? ""], quote, typedPrefix: kept };
}

// If there is less space than this, the description is left out.
const ABOUT_MIN_CELLS = 12;

/**
 * Formats candidates for bash, quoted for their position. With `columns`, bash lists them: descriptions follow, cut
 * so that nothing wraps. 0 columns means that bash inserts.
 */
export function formatReplies(
  found: Candidate[],
  { quote, typedPrefix: kept }: BashLine,
  columns: number,
): string[] {
  const fitting = found.filter(({ value }) => value.startsWith(kept) && !/[\n\r]/.test(value));
  const values = fitting.map(({ value }) => quoteValue(value.slice(kept.length), quote));
  if (columns === 0 || values.length < 2) return values;
  const width = Math.max(...values.map(countCells));
  const room = columns - width - "  ()".length - 1;
  return values.map((value, at) => {
    const about = (fitting[at]?.about ?? "").replace(/\s+/g, " ").trim();
    if (about === "" || room < ABOUT_MIN_CELLS) return value;
    return `${value}${" ".repeat(width - countCells(value))}  (${truncate(about, room)})`;
  });
}

function quoteValue(value: string, quote: string): string {
  if (quote === "'") return value.replaceAll("'", "'\\''");
  if (quote === '"') return value.replace(/["\\$`!]/g, "\\$&");
  return value.replace(/[^\p{L}\p{N}_@%+=:,./-]/gu, "\\$&");
}
