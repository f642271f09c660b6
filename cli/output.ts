import { load } from "../src/base/load.ts";
import type { Io } from "./io.ts";

/** How an answer is shown: for people, for pipes, as the server's JSON, or ids only (contract 6). */
export type Format = "table" | "tsv" | "json" | "ids";

/** What a row is: any JSON object of the API. */
export type Row = Record<string, unknown>;

/** A column of a list. */
export interface Column {
  name: string;
  /** What stands in a pipe, and on a terminal when `show` is absent. */
  value: (row: Row) => unknown;
  /** What a person sees. */
  show?: (row: Row, style: Style) => string;
}

/** Colours, which are no colours where nobody wants them. */
export type Style = Record<"bold" | "dim" | "red" | "green" | "yellow" | "cyan", (text: string) => string>;

/** A column that shows a field as it is. */
export function field(name: string): Column {
  return { name, value: (row) => row[name] };
}

/** A column of a time: Unix ms in a pipe, "3m ago" for people. */
export function timeField(name: string): Column {
  return {
    name,
    value: (row) => row[name],
    show: (row, style) => style.dim(relativeTime(row[name] as number | null)),
  };
}

/** A column of a time where the exact one matters: to the millisecond for people, too. */
export function clockField(name: string): Column {
  return { name, value: (row) => row[name], show: (row, style) => style.dim(exactTime(row[name] as number)) };
}

function exactTime(at: number): string {
  return `${localTime(at)}.${String(at % 1000).padStart(3, "0")}`;
}

const STATUS_STYLE: Record<string, keyof Style> = {
  idle: "dim",
  working: "cyan",
  running: "cyan",
  pending: "yellow",
  scheduled: "yellow",
  paused: "yellow",
  completed: "green",
  sent: "green",
  bee_processed: "green",
  failed: "red",
  cancelled: "red",
  ready: "green",
  ok: "green",
  warn: "yellow",
  fail: "red",
};

/** A column of a status, coloured by what it means. */
export function statusField(name = "status"): Column {
  return { name, value: (row) => row[name], show: (row, style) => coloured(String(row[name] ?? ""), style) };
}

function coloured(status: string, style: Style): string {
  const name = STATUS_STYLE[status];
  return name === undefined ? status : style[name](status);
}

const UNITS: [string, number][] = [["d", 86_400], ["h", 3_600], ["m", 60], ["s", 1]];

/** "3m ago", "in 2h", or "-" for no time. */
export function relativeTime(at: number | null | undefined, now = Date.now()): string {
  if (at === null || at === undefined) return "-";
  const seconds = Math.round(Math.abs(now - at) / 1000);
  if (seconds === 0) return "now";
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? ["s", 1];
  const words = `${Math.floor(seconds / size)}${unit}`;
  return at > now ? `in ${words}` : `${words} ago`;
}

/** Prints answers in the format that was asked for. */
export class Output {
  readonly format: Format;
  readonly style: Style;
  readonly #io: Io;

  constructor(io: Io, format: Format, style: Style) {
    this.#io = io;
    this.format = format;
    this.style = style;
  }

  /** A line of plain text. */
  line(text: string): void {
    this.#io.out(text + "\n");
  }

  /** Text as it is. */
  raw(text: string): void {
    this.#io.out(text);
  }

  /** A list: `json` is the server's text, `rows` what it holds. */
  async list(json: string, rows: Row[], columns: Column[], id: (row: Row) => string = idOf): Promise<void> {
    if (this.format === "json") return this.line(json);
    if (this.format === "ids") return rows.forEach((row) => this.line(id(row)));
    if (this.format === "tsv") {
      return rows.forEach((row) =>
        this.line(columns.map((column) => escaped(text(column.value(row)))).join("\t"))
      );
    }
    if (rows.length > 0) this.line(await this.#table(rows, columns));
    else this.#io.err(this.style.dim("none") + "\n");
  }

  /** One row of a list that comes bit by bit: as it would stand in a pipe, or as a line for people. */
  row(row: Row, columns: Column[], id: string): void {
    if (this.format === "ids") return this.line(text(row[id]));
    if (this.format === "tsv") {
      return this.line(columns.map((column) => escaped(text(column.value(row)))).join("\t"));
    }
    this.line(columns.map((column) => this.#cell(column, row)).filter((cell) => cell !== "").join("  "));
  }

  /** One object: `field<TAB>value` lines in a pipe, an aligned list for people. */
  object(json: string, row: Row, id: string = idOf(row)): void {
    if (this.format === "json") return this.line(json);
    if (this.format === "ids") return id === "" ? undefined : this.line(id);
    const entries = Object.entries(row);
    if (this.format === "tsv") {
      return entries.forEach(([name, value]) => this.line(`${name}\t${escaped(text(value))}`));
    }
    const width = Math.max(0, ...entries.map(([name]) => name.length));
    for (const [name, value] of entries) {
      const [first = "", ...more] = this.#shown(name, value).split("\n");
      this.line(`${this.style.bold(name.padEnd(width))}  ${first}`);
      for (const line of more) this.line(`${" ".repeat(width)}  ${line}`);
    }
  }

  #shown(name: string, value: unknown): string {
    if (/_at$|^ts$/.test(name) && typeof value === "number") {
      return `${localTime(value)} ${this.style.dim(`(${relativeTime(value)})`)}`;
    }
    if (name === "status") return coloured(String(value), this.style);
    const words = text(value);
    return words === "" ? this.style.dim("-") : visible(words);
  }

  /** Columns that say nothing are left out, and the last one takes what the terminal has left. */
  async #table(rows: Row[], columns: Column[]): Promise<string> {
    const { drawTable } = await load<typeof import("./table.ts")>("./table.ts", import.meta.url);
    const full = columns.filter((column) => rows.some((row) => text(column.value(row)) !== ""));
    const widths = full.slice(0, -1).map((column) =>
      Math.max(column.name.length, ...rows.map((row) => plainLength(this.#cell(column, row)))) + GAP
    );
    const left = this.#io.width - widths.reduce((sum, width) => sum + width, 0);
    const max = this.#io.width === 0 ? CELL_MAX : Math.max(left, LAST_CELL_MIN);
    const last = full.at(-1);
    const head = full.map((column) => this.style.bold(column.name.toUpperCase()));
    const cells = rows.map((row) =>
      full.map((column) => this.#cell(column, row, column === last ? max : CELL_MAX))
    );
    return drawTable(head, cells);
  }

  #cell(column: Column, row: Row, max = CELL_MAX): string {
    if (column.show !== undefined) return column.show(row, this.style);
    const words = visible(text(column.value(row))).replace(/[\t\n]/g, " ");
    if (words.length <= max) return words;
    const characters = [...words];
    return characters.length <= max ? words : `${characters.slice(0, max - 1).join("")}…`;
  }
}

const CELL_MAX = 60;
const LAST_CELL_MIN = 20;
const GAP = 2;

function plainLength(cell: string): number {
  // deno-lint-ignore no-control-regex
  return [...cell.replace(/\u001b\[\d+m/g, "")].length;
}

function idOf(row: Row): string {
  return text(row.id);
}

/** A value in words: lists by commas, departments and the like by name, other objects as JSON. */
function text(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    return value.map((one) =>
      typeof one === "object" && one !== null && "name" in one ? String(one.name) : text(one)
    )
      .join(",");
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll(
    "\r",
    "\\r",
  );
}

/** The text without what would drive a terminal: an agent may have written it (promises, threat model). */
export function visible(value: string): string {
  // deno-lint-ignore no-control-regex
  return value.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

function localTime(at: number): string {
  const date = new Date(at);
  const pad = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ` +
    `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** Colours for a stream, or none: by terminal and NO_COLOR only (facts, Deno). */
export async function styleFor(isTerminal: boolean, env: Record<string, string>): Promise<Style> {
  if (!isTerminal || env.NO_COLOR) {
    const plain = (value: string) => value;
    return { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };
  }
  return (await load<typeof import("./table.ts")>("./table.ts", import.meta.url)).colouredStyle();
}
