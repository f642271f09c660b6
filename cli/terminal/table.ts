import widthOf from "fast-string-truncated-width";
import { type Column, formatText, type Row } from "./column.ts";
import type { Style } from "./style.ts";
import { escapeControls } from "./visible.ts";

const GAP = 2;
const ID_ENDING_MIN = 6;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

const HEAD_MIN = 6;
// What a narrow terminal takes from columns, in this order: from long texts, then what only titles need, then from texts down to
// so many cells, then from all but ids, then from whatever is left.
const FLOORS: [kinds: (string | undefined)[], floor: number | "cells"][] = [
  [[undefined], 40],
  [[undefined, "fixed", "id"], "cells"],
  [[undefined], 14],
  [[undefined, "fixed"], 6],
  [[undefined, "fixed", "id"], 1],
];

/**
 * An aligned table without borders that is no wider than `width` cells (0: as wide as it has to be): ids as `…` and their
 * shortest unique ending, long cells cut with `…`, nothing wrapped (contract 8.12). Columns that say nothing are left out.
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

// What stands in a cell for a person, on one line and without colours.
function formatCell(column: Column, row: Row, endings: (value: string) => string = (id) => id): string {
  const words = column.show?.(row) ?? formatText(column.value(row));
  return escapeControls((column.kind === "id" ? endings(words) : words).replace(/[\t\n]/g, " "));
}

/** How many cells of a terminal a text takes. */
export function countCells(words: string): number {
  return widthOf(words).width;
}

/** The text cut to so many cells, with `…` where something is missing; never in the middle of a character. */
export function truncate(words: string, cells: number): string {
  // A text of any length costs no more than what can be seen of it.
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

/** Widths of columns of these natural widths, `needed` for what stands below their titles, made to fit by taking from the widest first. */
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

/** Turns ids, also inside session keys, into `…` and the shortest ending that no other id of the table has. */
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
