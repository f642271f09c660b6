import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

/** A column of a table. `extra` columns are left out on a phone. */
export interface Column<T> {
  title: string;
  cell: (item: T) => ComponentChildren;
  number?: boolean;
  extra?: boolean;
}

/** Rows below a common heading. Without a title they have no heading. */
export interface RowGroup<T> {
  title: string;
  items: readonly T[];
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  groups: readonly RowGroup<T>[];
  rowKey: (item: T) => string;
  /** Cells of a last row with the totals, one per column. */
  totals?: readonly ComponentChildren[];
}

// Each row is an element, so a long table grows in steps.
const ROWS_STEP = 200;

/** A dense table, for rows that people compare. The first column names the row. */
export function DataTable<T>({ label, columns, groups, rowKey, totals }: TableProps<T>) {
  const [shown, setShown] = useState(ROWS_STEP);
  const all = groups.reduce((sum, { items }) => sum + items.length, 0);
  let left = shown;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={label}>
      <table class="data">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={findClass(column)}>{column.title}</th>
            ))}
          </tr>
        </thead>
        {groups.map(({ title, items }) => {
          const visible = items.slice(0, Math.max(0, left));
          left -= items.length;
          return visible.length > 0 && (
            <tbody key={title}>
              {title !== "" && (
                <tr class="group">
                  <th colSpan={columns.length} scope="rowgroup">
                    {title} <span class="quiet">{items.length}</span>
                  </th>
                </tr>
              )}
              {visible.map((item) => (
                <tr key={rowKey(item)}>
                  {columns.map((column, index) =>
                    index === 0
                      ? <th key={column.title} scope="row">{column.cell(item)}</th>
                      : <td key={column.title} class={findClass(column)}>{column.cell(item)}</td>
                  )}
                </tr>
              ))}
            </tbody>
          );
        })}
        {totals !== undefined && (
          <tfoot>
            <tr>
              {columns.map((column, index) => (
                <td key={column.title} class={findClass(column)}>{totals[index]}</td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
      {all > shown && (
        <button type="button" class="small" onClick={() => setShown(shown + ROWS_STEP)}>Show more</button>
      )}
    </div>
  );
}

function findClass({ number = false, extra = false }: Pick<Column<never>, "number" | "extra">): string {
  return [number && "number", extra && "extra"].filter(Boolean).join(" ");
}
