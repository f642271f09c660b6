import type { Candidate } from "./candidates.ts";
import { countCells, truncate } from "../terminal/table.ts";

/** A line of bash up to the cursor, read without running any of it. */
interface BashLine {
  /** The words without their quotes, the one under the cursor last. */
  words: string[];
  /** The quote that is open at the cursor, or "". */
  quote: string;
  /** What of the last word bash keeps as it stands: a reply goes behind it. */
  typedPrefix: string;
}

/**
 * Splits a line into words by bash's quotes and backslashes alone: `$(…)`, backquotes and variables are text. `breaks` is
 * COMP_WORDBREAKS, behind whose characters bash begins anew. Null where the last word is put together from pieces that a
 * reply could not go behind.
 */
export function parseBashLine(line: string, breaks: string): BashLine | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  let kept = "";
  // What was quoted and closed again within the word that has not ended.
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

// Behind a name that leaves less room than this for it, a description says nothing.
const ABOUT_MIN_CELLS = 12;

/**
 * Candidates as bash inserts them: quoted for the place where they go. Where bash only lists, on so many columns, descriptions stand
 * behind them, cut so that nothing wraps; 0 columns: bash does not list.
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
