import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import type { Resource } from "../live/resource.ts";
import { Choice, type Options } from "./field.tsx";
import { Empty, LoadState } from "./notice.tsx";
import { Rows } from "./rows.tsx";
import { Status } from "./status.tsx";

const ROW_PX = 60;

interface ListingProps<T> {
  list: Resource<T[]> & { more?: () => void };
  /** The accessible name of the list. */
  label: string;
  row: (item: T) => ComponentChildren;
  /** Shown instead of an empty list. */
  empty: ComponentChildren;
  /** Every row's height in pixels. */
  height?: number;
}

/** A list of any length: its loading state, its empty state or its rows. */
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

/** A short list as a part of a page, with a button for the rest. */
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
  if (items.length === 0) return <p class="quiet">{empty}</p>;
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

/** Shown when the filters leave no row. */
export function NoMatches({ clear }: { clear: () => void }) {
  return (
    <Empty title="No matches.">
      <button type="button" onClick={clear}>Clear filters</button>
    </Empty>
  );
}

/** A filter of a list: a choice, or a search field if it has no options. */
interface Filter<Name extends string> {
  name: Name;
  label: string;
  options?: Options;
}

interface FilterBarProps<Name extends string> {
  filters: readonly (Filter<Name> | false)[];
  values: Record<Name, string>;
  change: (change: Partial<Record<Name, string>>) => void;
  /** How many rows there are. */
  count?: string | undefined;
  children?: ComponentChildren;
}

/** The filters above a list, and the number of its rows. */
export function FilterBar<Name extends string>(props: FilterBarProps<Name>) {
  const { filters, values, change, count, children } = props;
  return (
    <div class="filters">
      {filters.map((filter) => {
        if (filter === false) return null;
        const { name, label, options } = filter;
        const set = (value: string) => change({ [name]: value } as Partial<Record<Name, string>>);
        return options === undefined
          ? (
            <input
              key={name}
              type="search"
              aria-label={label}
              placeholder={label}
              value={values[name]}
              onInput={(event) => set(event.currentTarget.value)}
            />
          )
          : <Choice key={name} label={label} value={values[name]} onChange={set} options={options} />;
      })}
      {count !== undefined && <p class="count">{count}</p>}
      {children}
    </div>
  );
}

interface RowProps {
  /** Leads to a page; or `press` opens a dialog; or the row is no link. */
  href?: string;
  press?: () => void;
  status?: string;
  title: ComponentChildren;
  /** Shown below the title. Empty notes are left out. */
  notes?: readonly (string | false | undefined)[];
  side?: ComponentChildren;
  /** Buttons of the row. */
  children?: ComponentChildren;
  current?: boolean;
}

/** A row of a list: status, title, notes, and times at the side. */
export function Row({ href, press, status, title, notes = [], side, children, current = false }: RowProps) {
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
        <Link href={href} class="row-link">{content}</Link>
        {children}
      </div>
    );
  }
  return (
    <Link href={href} class="row" {...(current ? { "aria-current": "page" as const } : {})}>{content}</Link>
  );
}
