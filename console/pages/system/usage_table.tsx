import type { ComponentChildren } from "preact";
import { formatCost, formatCount } from "../../parts/format.ts";

interface Usage {
  executions: number;
  failed: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
}

/** A column: its title, its value, and how the value is formatted. */
export const USAGE_COLUMNS: readonly [string, (usage: Usage) => number | null, (value: number) => string][] =
  [
    ["Runs", ({ executions }) => executions, formatCount],
    ["Failed", ({ failed }) => failed, formatCount],
    ["Tokens in", ({ input_tokens }) => input_tokens, formatCount],
    ["Tokens out", ({ output_tokens }) => output_tokens, formatCount],
    ["Estimated cost", ({ cost_usd }) => cost_usd, formatCost],
  ];

interface TableProps<T extends Usage> {
  label: string;
  group: string;
  rows: readonly T[];
  name: (row: T) => ComponentChildren;
}

export function UsageTable<T extends Usage>({ label, group, rows, name }: TableProps<T>) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            <th scope="col">{group}</th>
            {USAGE_COLUMNS.map(([title]) => <th key={title} scope="col" class="number">{title}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <td>{name(row)}</td>
              {USAGE_COLUMNS.map(([title, read, format]) => {
                const value = read(row);
                return <td key={title} class="number">{value === null ? "–" : format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
