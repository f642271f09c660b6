import type { ComponentChildren } from "preact";
import type { Resource } from "../live/resource.ts";
import { Waiting } from "./notice.tsx";
import { Rows } from "./rows.tsx";

const ROW_PX = 60;

interface ListingProps<T> {
  list: Resource<T[]> & { more?: () => void };
  /** What the rows are, read out. */
  label: string;
  row: (item: T) => ComponentChildren;
  /** What is said when there is none. */
  empty: ComponentChildren;
  /** Every row's height in pixels. */
  height?: number;
}

/** A list as it is read: what it waits for or was refused, that it is empty, or its rows. */
export function Listing<T>({ list, label, row, empty, height = ROW_PX }: ListingProps<T>) {
  const items = list.data;
  if (items === undefined) return <Waiting refusal={list.refusal} />;
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
