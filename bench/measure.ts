/** One line of the result table: a figure, and the baseline that was measured in the same run. */
export interface Row {
  what: string;
  value: number;
  unit: string;
  /** The baseline in the same unit, if there is one. */
  bare?: number;
  /** What `bare` is. */
  beside?: string;
  /** The result in words, such as "31 % of it". */
  says: string;
  goal: string;
  met: boolean | null;
}

/** Resolves after so many ms. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The middle of the values. */
export function median(values: number[]): number {
  return percentile(values, 50);
}

/** The value below which `percent` of the values lie. */
export function percentile(values: number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * percent / 100))] ?? NaN;
}

/** Three significant digits. */
export function short(value: number): string {
  return value >= 1_000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** The table as text. */
export function table(rows: Row[]): string {
  const head = ["what", "figure", "beside", "says", "goal", ""];
  const lines = rows.map((row) => [
    row.what,
    `${short(row.value)} ${row.unit}`,
    row.bare === undefined ? "-" : `${short(row.bare)} ${row.unit} ${row.beside ?? ""}`,
    row.says,
    row.goal,
    row.met === null ? "" : row.met ? "ok" : "MISSED",
  ]);
  const widths = head.map((title, index) =>
    Math.max(title.length, ...lines.map((line) => line[index]?.length ?? 0))
  );
  const print = (cells: string[]) =>
    cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join("  ").trimEnd();
  return [print(head), print(widths.map((width) => "-".repeat(width))), ...lines.map(print)].join("\n");
}

/** Runs `work` repeatedly, the first `warm` times without measuring; answers the ms of each. */
export async function timed(
  times: number,
  warm: number,
  work: (index: number) => Promise<void>,
): Promise<number[]> {
  const all: number[] = [];
  for (let index = -warm; index < times; index++) {
    const started = performance.now();
    await work(index);
    if (index >= 0) all.push(performance.now() - started);
  }
  return all;
}
