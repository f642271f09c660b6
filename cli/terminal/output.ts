import { load } from "../../src/base/lazy_import.ts";
import {
  type Column,
  formatLocalTime,
  formatRelativeTime,
  formatText,
  paintStatus,
  type Row,
} from "./column.ts";
import type { Io } from "./io.ts";
import type { Style } from "./style.ts";
import { escapeControls, escapeJson } from "./visible.ts";

/** The output format: for terminals, for pipes, the server's JSON, or only IDs (contract 6). */
type Format = "table" | "tsv" | "json" | "ids";

export class Output {
  readonly format: Format;
  readonly style: Style;
  readonly #io: Io;

  constructor(io: Io, format: Format, style: Style) {
    this.#io = io;
    this.format = format;
    this.style = style;
  }

  line(text: string): void {
    const isShown = this.format === "json" && this.#io.outIsTerminal;
    this.#io.out((isShown ? escapeJson(text) : text) + "\n");
  }

  raw(text: string): void {
    this.#io.out(text);
  }

  /** Prints a list. `json` is the server's text of `rows`. */
  async list(json: string, rows: Row[], columns: Column[], id: (row: Row) => string = readId): Promise<void> {
    if (this.format === "json") return this.line(json);
    if (this.format === "ids") return rows.forEach((row) => this.line(id(row)));
    if (this.format === "tsv") return rows.forEach((row) => this.line(formatTsv(row, columns)));
    if (rows.length === 0) return this.#io.err(this.style.dim("none") + "\n");
    const { drawTable } = await load<typeof import("./table.ts")>("./table.ts", import.meta.url);
    this.line(drawTable(rows, columns, this.style, this.#io.width));
  }

  /** Prints one row of a stream: tab-separated in a pipe, as a line on a terminal. */
  row(row: Row, columns: Column[], id: string): void {
    if (this.format === "ids") return this.line(formatText(row[id]));
    if (this.format === "tsv") return this.line(formatTsv(row, columns));
    this.line(columns.map((column) => this.#cell(column, row)).filter((cell) => cell !== "").join("  "));
  }

  /** Prints one object: `field<TAB>value` lines in a pipe, an aligned list on a terminal. */
  object(json: string, row: Row, id: string = readId(row)): void {
    if (this.format === "json") return this.line(json);
    if (this.format === "ids") {
      if (id !== "") this.line(id);
      return this.#printSecrets(row);
    }
    const entries = Object.entries(row);
    if (this.format === "tsv") {
      return entries.forEach(([name, value]) => this.line(`${name}\t${escapeField(formatText(value))}`));
    }
    const width = Math.max(0, ...entries.map(([name]) => name.length));
    for (const [name, value] of entries) {
      const [first = "", ...more] = this.#shown(name, value).split("\n");
      this.line(`${this.style.bold(name.padEnd(width))}  ${first}`);
      for (const line of more) this.line(`${" ".repeat(width)}  ${line}`);
    }
  }

  // No later request shows these values again, so even -q prints them, next to the IDs on stdout.
  #printSecrets(row: Row): void {
    for (const name of SECRET_FIELDS) {
      const value = row[name];
      if (typeof value === "string" && value !== "") this.#io.err(`${name} ${escapeControls(value)}\n`);
    }
  }

  #shown(name: string, value: unknown): string {
    if (/_at$|^ts$/.test(name) && typeof value === "number") {
      return `${formatLocalTime(value)} ${this.style.dim(`(${formatRelativeTime(value)})`)}`;
    }
    const words = formatText(value);
    if (name === "status") return paintStatus(escapeControls(words), words, this.style);
    return words === "" ? this.style.dim("-") : escapeControls(words);
  }

  #cell(column: Column, row: Row): string {
    const words = escapeControls(
      (column.show?.(row) ?? formatText(column.value(row))).replace(/[\t\n]/g, " "),
    );
    const characters = [...words];
    const cut = characters.length <= CELL_MAX ? words : `${characters.slice(0, CELL_MAX - 1).join("")}…`;
    return cut === "" ? "" : column.paint?.(cut, row, this.style) ?? cut;
  }
}

const SECRET_FIELDS = ["token", "secret", "password"];

// The rows of a stream are not aligned, so a cell has this maximum.
const CELL_MAX = 60;

function readId(row: Row): string {
  return formatText(row.id);
}

function formatTsv(row: Row, columns: Column[]): string {
  return columns.map((column) => escapeField(formatText(column.value(row)))).join("\t");
}

/** Writes a text as one field of a line: the backslash, tabs and line breaks as `\\`, `\t`, `\n` and `\r` (contract 6). */
export function escapeField(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll(
    "\r",
    "\\r",
  );
}
