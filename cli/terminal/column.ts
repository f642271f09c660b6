import type { Style } from "./style.ts";

/** A JSON object of the API. */
export type Row = Record<string, unknown>;

export interface Column {
  name: string;
  /** The cell in a pipe, and on a terminal without `show`. */
  value: (row: Row) => unknown;
  /** The cell on a terminal, without colors. */
  show?: (row: Row) => string;
  /** Colors the cell on a terminal. */
  paint?: (text: string, row: Row, style: Style) => string;
  /** An `id` is shortened to its ending. A `fixed` column is cut last on a narrow terminal. */
  kind?: "id" | "fixed";
}

/**
 * Builds columns from names of fields, separated by blanks: `id` and `*_id` are IDs, `*_at` and `*_until` times, and
 * `status` is colored.
 */
export function toColumns(...columns: (string | Column)[]): Column[] {
  return columns.flatMap((column) =>
    typeof column === "string" ? column.split(" ").map(buildColumn) : column
  );
}

function buildColumn(name: string): Column {
  if (/^id$|_id$|^session_key$/.test(name)) return idField(name);
  if (/_at$|_until$/.test(name)) return timeField(name);
  return name === "status" ? statusField() : field(name);
}

/** Builds a column that shows a field unchanged. */
export function field(name: string): Column {
  return { name, value: (row) => row[name] };
}

/** Builds a column of an ID: the whole ID in a pipe, only its ending on a terminal. */
export function idField(name: string): Column {
  return { name, value: (row) => row[name], kind: "id" };
}

/** Builds a column of a time: Unix ms in a pipe, "3m ago" on a terminal. */
export function timeField(name: string): Column {
  return { ...clockField(name), show: (row) => formatRelativeTime(row[name] as number | null) };
}

/** Builds a column of a time to the millisecond. */
export function clockField(name: string): Column {
  return {
    name,
    value: (row) => row[name],
    show: (row) => formatExactTime(row[name] as number),
    paint: (text, _row, style) => style.dim(text),
    kind: "fixed",
  };
}

/** Builds a column of a status, colored by its meaning. */
export function statusField(name = "status"): Column {
  return {
    name,
    value: (row) => row[name],
    paint: (text, row, style) => paintStatus(text, String(row[name] ?? ""), style),
    kind: "fixed",
  };
}

const STATUS_STYLE: Record<string, keyof Style> = {
  idle: "dim",
  working: "cyan",
  running: "cyan",
  pending: "yellow",
  scheduled: "yellow",
  waiting: "yellow",
  open: "yellow",
  answered: "green",
  expired: "red",
  paused: "yellow",
  completed: "green",
  sent: "green",
  bee_processed: "green",
  failed: "red",
  cancelled: "red",
  unavailable: "red",
  ready: "green",
  ok: "green",
  warn: "yellow",
  fail: "red",
};

export function paintStatus(text: string, status: string, style: Style): string {
  const name = STATUS_STYLE[status];
  return name === undefined ? text : style[name](text);
}

/** Formats a value: lists with commas, objects by name or as JSON. */
export function formatText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    return value.map((one) =>
      typeof one === "object" && one !== null && "name" in one ? String(one.name) : formatText(one)
    )
      .join(",");
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const UNITS: [string, number][] = [["d", 86_400], ["h", 3_600], ["m", 60], ["s", 1]];

/** Formats a time as "3m ago" or "in 2h", and no time as "-". */
export function formatRelativeTime(at: number | null | undefined, now = Date.now()): string {
  if (at === null || at === undefined) return "-";
  const seconds = Math.round(Math.abs(now - at) / 1000);
  if (seconds === 0) return "now";
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? ["s", 1];
  const words = `${Math.floor(seconds / size)}${unit}`;
  return at > now ? `in ${words}` : `${words} ago`;
}

/** Formats a local time, such as `2026-11-21 14:20:00`. */
export function formatLocalTime(at: number): string {
  const date = new Date(at);
  const pad = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ` +
    `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

function formatExactTime(at: number): string {
  return `${formatLocalTime(at)}.${String(at % 1000).padStart(3, "0")}`;
}
