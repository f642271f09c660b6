import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { narrow } from "../live/narrow.ts";
import type { Resource } from "../live/resource.ts";
import { TIME_RANGES } from "../live/time_range.ts";
import { formatTotal } from "./format.ts";
import type { Options } from "./field.tsx";
import { Empty, LoadState } from "./notice.tsx";
import { Rows } from "./rows.tsx";
import { Status } from "./status.tsx";
import { ColumnChoice, Table, type TableSpec } from "./table.tsx";

const ROW_PX = 48;

interface ListingProps<T> {
  list: Resource<T[]> & { more?: () => void };
  label: string;
  row: (item: T) => ComponentChildren;
  empty: ComponentChildren;
  /** Every row's height in pixels. */
  height?: number;
}

export function Listing<T>({ list, label, row, empty, height = ROW_PX }: ListingProps<T>) {
  const items = list.data;
  if (items === undefined) return <LoadState error={list.error} />;
  if (items.length === 0) return <>{empty}</>;
  return (
    <Rows
      label={label}
      count={items.length}
      height={height}
      {...(list.more === undefined ? {} : { onEnd: list.more })}
      row={(index) => {
        const item = items[index];
        return item !== undefined && row(item);
      }}
    />
  );
}

export function ShortListing<T extends { id: string }>(
  { list, row, empty, class: classes = "list" }: {
    list: Resource<T[]> & { total?: string; more?: () => void };
    row: (item: T) => ComponentChildren;
    empty: ComponentChildren;
    class?: string;
  },
) {
  const items = list.data;
  if (items === undefined) return <LoadState error={list.error} />;
  if (items.length === 0) return typeof empty === "string" ? <p class="quiet">{empty}</p> : <>{empty}</>;
  return (
    <>
      <ul class={classes}>{items.map((item) => <li key={item.id}>{row(item)}</li>)}</ul>
      {Number.parseInt(list.total ?? "0") > items.length && (
        <button
          type="button"
          onClick={() => list.more?.()}
        >
          Show more
        </button>
      )}
    </>
  );
}

/** A choice, or a search field if it has no options. `TIME_FILTER` is a time range with the values `since`, `from` and `to`. */
interface Filter<Name extends string> {
  name: Name;
  label: string;
  options?: Options;
}

export const TIME_FILTER = { name: "since", label: "Time", options: TIME_RANGES } as const;

interface FilterBarProps<Name extends string> {
  filters: readonly (Filter<Name> | false)[];
  values: Record<Name, string>;
  change: (change: Partial<Record<Name, string>>) => void;
  count?: string | undefined;
  children?: ComponentChildren;
}

export function FilterBar<Name extends string>(props: FilterBarProps<Name>) {
  const { filters, values, change, count, children } = props;
  return (
    <div class="filters">
      {filters.map((filter) => {
        if (filter === false) return null;
        const { name, label, options } = filter;
        const value = values[name];
        const set = (text: string) => change({ [name]: text } as Partial<Record<Name, string>>);
        if (options === undefined) return <SearchField key={name} label={label} value={value} set={set} />;
        return (
          <div key={name} class="choice">
            <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
              {options.map(([one, text]) => <option key={one} value={one}>{text}</option>)}
            </select>
            {options === TIME_RANGES && value === "custom" && (
              <CustomRange values={values} change={change as CustomRangeProps["change"]} />
            )}
          </div>
        );
      })}
      {count !== undefined && <p class="count">{count}</p>}
      {children}
    </div>
  );
}

// A request for each key would be answered after the text has changed again.
const TYPING_MS = 250;

function SearchField({ label, value, set }: { label: string; value: string; set: (text: string) => void }) {
  const [typed, setTyped] = useState(value);
  // Another filter may change before the text is applied, and must stay.
  const latest = useRef(set);
  latest.current = set;
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => latest.current(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
    />
  );
}

interface CustomRangeProps {
  values: Record<string, string>;
  change: (change: Record<string, string>) => void;
}

function CustomRange({ values, change }: CustomRangeProps) {
  return (
    <>
      {(["from", "to"] as const).map((name) => (
        <input
          key={name}
          type="datetime-local"
          aria-label={name === "from" ? "From" : "To"}
          value={values[name] ?? ""}
          onChange={(event) => change({ [name]: event.currentTarget.value })}
        />
      ))}
    </>
  );
}

interface FilteredListingProps<T, Name extends string> extends ListingProps<T>, FilterBarProps<Name> {
  list: ListingProps<T>["list"] & { total?: string };
  /** Names of values that do not count as filters. */
  keep?: readonly Name[];
  /** False hides the filters. */
  bar?: boolean;
  /** Shows the rows as a table, except on a phone. */
  table?: TableSpec<T>;
  /** Shown between the filters and the rows. */
  above?: ComponentChildren;
}

/** A list below its filters. When the filters leave no row, it offers to clear them. */
export function FilteredListing<T, Name extends string>(
  props: FilteredListingProps<T, Name>,
) {
  const { list, values, change, keep = [], bar = true, empty, table, label } = props;
  const { count = list.data && `${formatTotal(list.total ?? "")} total` } = props;
  const names = (Object.keys(values) as Name[]).filter((name) => !keep.includes(name));
  const clear = () => change(Object.fromEntries(names.map((name) => [name, ""])) as typeof values);
  const noMatches = (
    <Empty title="No matches.">
      <button type="button" onClick={clear}>Clear filters</button>
    </Empty>
  );
  const none = names.some((name) => values[name] !== "") ? noMatches : empty;
  const { data = [], more } = list;
  return (
    <>
      {bar && (
        <FilterBar {...props} count={count}>
          {props.children}
          {table !== undefined && <ColumnChoice table={table} />}
        </FilterBar>
      )}
      {props.above}
      {table === undefined || narrow.value || data.length === 0
        ? <Listing {...props} empty={none} />
        : <Table label={label} items={data} more={more} table={table} />}
    </>
  );
}

interface RowProps {
  /** The page that the row links to. With `press` instead, the row is a button. Without both, a click does nothing. */
  href?: string;
  press?: () => void;
  status?: string;
  title: ComponentChildren;
  /** Texts below the title. Empty texts are left out. */
  notes?: readonly (string | false | undefined)[];
  side?: ComponentChildren;
  /** A control before the link of a row with children. */
  before?: ComponentChildren;
  children?: ComponentChildren;
  current?: boolean;
}

export function Row(
  { href, press, status, title, notes = [], side, before, children, current = false }: RowProps,
) {
  const content = (
    <>
      {status !== undefined && <Status value={status} bare />}
      <span class="row-main">
        <span class="row-title">{title}</span>
        <span class="row-note">{notes.filter(Boolean).join(" · ")}</span>
      </span>
      {side !== undefined && <span class="row-side">{side}</span>}
    </>
  );
  if (press !== undefined) return <button type="button" class="row" onClick={press}>{content}</button>;
  if (href === undefined) {
    return <div class={children === undefined ? "row" : "row whole"}>{content}{children}</div>;
  }
  if (children !== undefined) {
    return (
      <div class="row needs">
        {before}
        <Link href={href} class="row-link">{content}</Link>
        {children}
      </div>
    );
  }
  return (
    <Link href={href} class="row" {...(current ? { "aria-current": "page" as const } : {})}>{content}</Link>
  );
}
