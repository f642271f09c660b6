import type { Style } from "./style.ts";

/** What a row is: any JSON object of the API. */
export type Row = Record<string, unknown>;

/** A column of a list. */
export interface Column {
  name: string;
  /** What stands in a pipe, and on a terminal when `show` is absent. */
  value: (row: Row) => unknown;
  /** What a person sees, without colours. */
  show?: (row: Row) => string;
  /** Colours what a person sees. */
  paint?: (text: string, row: Row, style: Style) => string;
  /** Ids are shown by their endings; what is `fixed` is cut last when the terminal is narrow. */
  kind?: "id" | "fixed";
}

/** A column that shows a field as it is. */
export function field(name: string): Column {
  return { name, value: (row) => row[name] };
}

/** A column of an id: whole in a pipe, its ending for people. */
export function idField(name = "id"): Column {
  return { name, value: (row) => row[name], kind: "id" };
}

/** A column of a time: Unix ms in a pipe, "3m ago" for people. */
export function timeField(name: string): Column {
  return {
    name,
    value: (row) => row[name],
    show: (row) => formatRelativeTime(row[name] as number | null),
    paint: (text, _row, style) => style.dim(text),
    kind: "fixed",
  };
}

/** A column of a time where the exact one matters: to the millisecond for people, too. */
export function clockField(name: string): Column {
  return {
    name,
    value: (row) => row[name],
    show: (row) => formatExactTime(row[name] as number),
    paint: (text, _row, style) => style.dim(text),
    kind: "fixed",
  };
}

/** A column of a status, coloured by what it means. */
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

/** `text` in the colour of a status. */
export function paintStatus(text: string, status: string, style: Style): string {
  const name = STATUS_STYLE[status];
  return name === undefined ? text : style[name](text);
}

/** A value in words: lists by commas, departments and the like by name, other objects as JSON. */
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

/** "3m ago", "in 2h", or "-" for no time. */
export function formatRelativeTime(at: number | null | undefined, now = Date.now()): string {
  if (at === null || at === undefined) return "-";
  const seconds = Math.round(Math.abs(now - at) / 1000);
  if (seconds === 0) return "now";
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? ["s", 1];
  const words = `${Math.floor(seconds / size)}${unit}`;
  return at > now ? `in ${words}` : `${words} ago`;
}

/** A time on this machine's clock, such as `2026-11-21 14:20:00`. */
export function formatLocalTime(at: number): string {
  const date = new Date(at);
  const pad = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ` +
    `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

function formatExactTime(at: number): string {
  return `${formatLocalTime(at)}.${String(at % 1000).padStart(3, "0")}`;
}
