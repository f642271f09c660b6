import { Columns3 } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { hiddenColumns, toggleColumn } from "../live/columns.ts";
import { Checkbox } from "./field.tsx";
import { Menu } from "./menu.tsx";
import { memo, useDrawnRows } from "./rows.tsx";
import type { Selection } from "./selection.ts";

const ROW_PX = 34;
const HEAD_PX = 32;

export interface Column<T> {
  id: string;
  title: string;
  /** A track of a CSS grid, such as `90px`. */
  width: string;
  cell: (row: T) => ComponentChildren;
  number?: boolean;
  /** Columns without this are always visible. */
  optional?: boolean;
}

export interface TableSpec<T> {
  /** Names the table where the browser keeps the choice of columns. */
  id: string;
  columns: readonly Column<T>[];
  key: (row: T) => string;
  href: (row: T) => string;
  /** Names a row for screen readers. */
  name: (row: T) => string;
  selection?: Selection | undefined;
}

interface TableProps<T> {
  label: string;
  items: readonly T[];
  more?: (() => void) | undefined;
  table: TableSpec<T>;
}

/**
 * A table of any length with one line a row. Arrow keys or j and k move, Space or x selects, Shift extends the selection, and Enter
 * opens a row.
 */
export function Table<T>({ label, items, more, table }: TableProps<T>) {
  const { columns, key, href, selection } = table;
  const [active, setActive] = useState(0);
  const [, navigate] = useLocation();
  const count = items.length;
  const { box, measure, indexes } = useDrawnRows({
    ...{ count, height: ROW_PX },
    ...(more === undefined ? {} : { onEnd: more }),
  });
  const hidden = hiddenColumns.value;
  const shown = useMemo(() => columns.filter(({ id }) => !hidden.has(`${table.id}.${id}`)), [
    columns,
    hidden,
  ]);
  const ids = useMemo(() => items.map(key), [items, items.length, key]);
  useEffect(() => setActive((before) => Math.max(0, Math.min(before, count - 1))), [count]);

  function moveTo(index: number, extend: boolean): void {
    const at = Math.max(0, Math.min(index, count - 1));
    setActive(at);
    const area = box.current;
    if (area === null) return;
    area.focus();
    const [top, end] = [at * ROW_PX, (at + 1) * ROW_PX + HEAD_PX - area.clientHeight];
    if (area.scrollTop > top) area.scrollTop = top;
    else if (area.scrollTop < end) area.scrollTop = end;
    const item = items[at];
    if (extend && item !== undefined) selection?.add(key(item));
  }

  function onKeyDown(event: KeyboardEvent): void {
    const item = items[active];
    if (item === undefined || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW_PX) - 2);
    const steps: Record<string, number> = {
      ...{ ArrowDown: 1, j: 1, J: 1, ArrowUp: -1, k: -1, K: -1 },
      ...{ PageDown: page, PageUp: -page, Home: -count, End: count },
    };
    const step = steps[event.key];
    if (step !== undefined && !event.ctrlKey) {
      if (event.shiftKey) selection?.add(key(item));
      moveTo(active + step, event.shiftKey);
    } else if (event.key === "Enter" && event.target === box.current) navigate(href(item));
    else if (selection === undefined) return;
    else if ((event.key === " " || event.key === "x") && !event.ctrlKey) selection.toggle(key(item));
    else if (event.key === "a" && event.ctrlKey) selection.set(items.map(key));
    else if (event.key === "Escape" && selection.ids.size > 0) selection.clear();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const tracks = [selection === undefined ? "" : "34px", ...shown.map(({ width }) => width)].join(" ");
  return (
    <div
      class="rows table"
      ref={box}
      tabIndex={0}
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      {...(selection === undefined ? {} : { "aria-multiselectable": true })}
      {...(indexes.includes(active) ? { "aria-activedescendant": `${table.id}-${active}` } : {})}
      style={{ "--tracks": tracks }}
      onScroll={measure}
      onKeyDown={onKeyDown}
    >
      <div class="table-row table-head" role="row" aria-rowindex={1}>
        {selection !== undefined && <SelectAll ids={ids} selection={selection} />}
        {shown.map(({ id, title, number }) => (
          <span key={id} role="columnheader" class={number ? "number" : ""}>{title}</span>
        ))}
      </div>
      <div class="rows-space" style={{ height: `${count * ROW_PX}px` }} role="presentation">
        {indexes.map((index) => {
          const item = items[index];
          return item !== undefined && (
            <TableRow
              key={key(item)}
              item={item}
              index={index}
              table={table}
              shown={shown}
              active={index === active}
              activate={setActive}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowProps<T> {
  item: T;
  index: number;
  table: TableSpec<T>;
  /** The visible columns. */
  shown: readonly Column<T>[];
  active: boolean;
  activate: (index: number) => void;
}

// A row that stays visible while the table scrolls is not drawn again.
const TableRow = memo(DrawnRow) as typeof DrawnRow;

function DrawnRow<T>({ item, index, table, shown, active, activate }: RowProps<T>) {
  const { id, key, href, name, selection } = table;
  const [, navigate] = useLocation();
  const selected = selection?.ids.has(key(item)) ?? false;
  return (
    <div
      id={`${id}-${index}`}
      class={`table-row ${active ? "active" : ""} ${selected ? "selected" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      {...(selection === undefined ? {} : { "aria-selected": selected })}
      style={{ height: `${ROW_PX}px`, insetBlockStart: `${index * ROW_PX}px` }}
      onFocusCapture={() => activate(index)}
      onClick={(event) => {
        activate(index);
        if (!(event.target as Element).closest("a, button, input, label")) navigate(href(item));
      }}
    >
      {selection !== undefined && (
        <span role="gridcell" class="table-tick">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select ${name(item)}`}
            checked={selected}
            onChange={() => selection.toggle(key(item))}
          />
        </span>
      )}
      {shown.map((column, at) => (
        <span key={column.id} role="gridcell" class={column.number ? "number" : ""}>
          {at === 0 ? <Link href={href(item)}>{column.cell(item)}</Link> : column.cell(item)}
        </span>
      ))}
    </div>
  );
}

interface SelectAllProps {
  ids: readonly string[];
  selection: Selection;
}

function SelectAll({ ids, selection }: SelectAllProps) {
  const selected = selection.ids.size;
  const all = selected > 0 && selected === ids.length;
  return (
    <span role="columnheader" class="table-tick">
      <input
        type="checkbox"
        aria-label="Select all loaded rows"
        checked={all}
        indeterminate={selected > 0 && !all}
        onChange={() => all ? selection.clear() : selection.set(ids)}
      />
    </span>
  );
}

/** The choice of the visible columns. */
export function ColumnChoice<T>({ table: { id: table, columns } }: { table: TableSpec<T> }) {
  return (
    <Menu icon={Columns3} label="Columns" class="on-desk">
      {columns.filter(({ optional }) => optional).map(({ id, title }) => (
        <Checkbox
          key={id}
          label={title}
          checked={!hiddenColumns.value.has(`${table}.${id}`)}
          onChange={() => toggleColumn(`${table}.${id}`)}
        />
      ))}
    </Menu>
  );
}
