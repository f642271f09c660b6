import Table from "cli-table3";
import colors from "picocolors";
import type { Style } from "./output.ts";

/** Colours for a terminal. */
export function colouredStyle(): Style {
  const { bold, dim, red, green, yellow, cyan } = colors.createColors(true);
  return { bold, dim, red, green, yellow, cyan };
}

const BORDERS = [
  "top",
  "top-mid",
  "top-left",
  "top-right",
  "bottom",
  "bottom-mid",
  "bottom-left",
  "bottom-right",
  "left",
  "left-mid",
  "mid",
  "mid-mid",
  "right",
  "right-mid",
  "middle",
];

/** An aligned table without borders. */
export function drawTable(head: string[], rows: string[][]): string {
  const table = new Table({
    head,
    chars: Object.fromEntries(BORDERS.map((border) => [border, ""])),
    style: { head: [], border: [], "padding-left": 0, "padding-right": 2 },
  });
  table.push(...rows);
  return table.toString().split("\n").map((line) => line.trimEnd()).join("\n");
}
