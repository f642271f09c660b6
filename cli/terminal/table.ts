import widthOf from "fast-string-truncated-width";
import { type Column, formatText, type Row } from "./column.ts";
import type { Style } from "./style.ts";
import { escapeControls } from "./visible.ts";

const GAP = 2;
const ID_ENDING_MIN = 6;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

const HEAD_MIN = 6;
// The order in which columns shrink on a narrow terminal: long texts, headers, texts down to 14 cells, all but IDs,
// everything.
const FLOORS: [kinds: (string | undefined)[], floor: number | "cells"][] = [
  [[undefined], 40],
  [[undefined, "fixed", "id"], "cells"],
  [[undefined], 14],
  [[undefined, "fixed"], 6],
  [[undefined, "fixed", "id"], 1],
];

/**
 * Draws an aligned table no wider than `width` cells (0 for no limit). IDs are cut to their shortest unique ending
 * and long cells with `…`; no line wraps (contract 8.12). Empty columns are left out.
 */
export function drawTable(rows: Row[], columns: Column[], style: Style, width: number): string {
  const full = columns.filter((column) => rows.some((row) => formatText(column.value(row)) !== ""));
  const endings = shortenIds(rows, full);
  const cells = rows.map((row) => full.map((column) => formatCell(column, row, endings)));
  const heads = full.map((column) => column.name.toUpperCase());
  const needed = full.map((_column, at) => Math.max(0, ...cells.map((row) => countCells(row[at] ?? ""))));
  const natural = heads.map((head, at) => Math.max(countCells(head), needed[at] ?? 0));
  const widths = fitWidths(full, { natural, needed }, width);
  const line = (words: string[], paint: (word: string, at: number) => string) =>
    words.map((word, at) => {
      const cut = truncate(word, widths[at] ?? 0);
      const gap = at === words.length - 1 ? 0 : (widths[at] ?? 0) - countCells(cut) + GAP;
      return paint(cut, at) + " ".repeat(gap);
    }).join("").trimEnd();
  return [
    line(heads, (word) => style.bold(word)),
    ...cells.map((words, index) =>
      line(words, (word, at) => full[at]?.paint?.(word, rows[index] ?? {}, style) ?? word)
    ),
  ].join("\n");
}

// Formats a cell for a terminal, on one line and without colors.
function formatCell(column: Column, row: Row, endings: (value: string) => string = (id) => id): string {
  const words = column.show?.(row) ?? formatText(column.value(row));
  return escapeControls((column.kind === "id" ? endings(words) : words).replace(/[\t\n]/g, " "));
}

/** Counts the cells that a text takes on a terminal. */
export function countCells(words: string): number {
  return widthOf(words).width;
}

/** Cuts a text to a number of cells, with `…` at the end, never within a character. */
export function truncate(words: string, cells: number): string {
  // Measures only the start of a long text, because the rest is never visible.
  const near = words.slice(0, Math.max(cells, 0) * 32 + 32);
  if (near.length === words.length && countCells(words) <= cells) return words;
  if (cells < 1) return "";
  let kept = "";
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(near)) {
    used += countCells(segment);
    if (used > cells - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Shrinks columns to fit the width, widest first. `needed` is the width of the cells below the header. */
function fitWidths(
  columns: Column[],
  { natural, needed }: { natural: number[]; needed: number[] },
  width: number,
): number[] {
  const widths = [...natural];
  if (width === 0) return widths;
  let excess = widths.reduce((sum, one) => sum + one, 0) + GAP * (widths.length - 1) - width;
  for (const [kinds, floor] of FLOORS) {
    while (excess > 0) {
      const least = (at: number) => floor === "cells" ? Math.max(needed[at] ?? 0, HEAD_MIN) : floor;
      const open = widths.flatMap((one, at) =>
        one > least(at) && kinds.includes(columns[at]?.kind) ? [at] : []
      );
      const widest = open.reduce(
        (best, at) => (widths[at] ?? 0) > (widths[best] ?? 0) ? at : best,
        open[0] ?? -1,
      );
      if (widest === -1) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
      excess--;
    }
  }
  return widths;
}

/** Returns a function that cuts IDs, also within session keys, to `…` and the shortest unique ending. */
function shortenIds(rows: Row[], columns: Column[]): (value: string) => string {
  const ids = new Set(
    columns.filter((column) => column.kind === "id")
      .flatMap((column) => rows.flatMap((row) => formatText(column.value(row)).match(UUID) ?? []))
      .map((id) => id.toLowerCase()),
  );
  let length = ID_ENDING_MIN;
  while (new Set([...ids].map((id) => id.slice(-length))).size < ids.size) length++;
  return (value) => value.replace(UUID, (id) => `…${id.slice(-length)}`);
}
