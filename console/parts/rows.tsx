import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useReducer, useRef } from "preact/hooks";

interface RowsProps {
  /** What the rows are, read out. */
  label: string;
  count: number;
  /** Every row's height in pixels. */
  height: number;
  row: (index: number) => ComponentChildren;
  /** Called when the end comes into sight. */
  onEnd?: () => void;
  /** Keeps to the end while rows are added there, unless somebody has scrolled up. */
  sticky?: boolean;
  /** A row to bring into sight. */
  target?: number | undefined;
  class?: string;
}

const OVERSCAN = 12;
const NEAR_END_PX = 40;

/** A list of any length: only the rows in sight are elements (facts, console 3.1). */
export function Rows(props: RowsProps) {
  const { label, count, height, row, onEnd, sticky = false, target } = props;
  const box = useRef<HTMLDivElement>(null);
  const virtualizer = useRef<Virtualizer<HTMLDivElement, Element> | null>(null);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const atEnd = useRef(true);
  const list = virtualizer.current ??= new Virtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(0),
  });
  list.setOptions({ ...list.options, count, estimateSize: () => height });
  useEffect(() => list._didMount(), []);
  useEffect(() => {
    list._willUpdate();
    if (sticky && atEnd.current && count > 0) list.scrollToIndex(count - 1, { align: "end" });
    redraw(0);
  }, [count]);
  useEffect(() => {
    if (target !== undefined && target < count) list.scrollToIndex(target, { align: "center" });
  }, [target, target !== undefined && target < count]);
  const shown = list.getVirtualItems();
  const last = shown.at(-1)?.index ?? -1;
  useEffect(() => {
    if (count > 0 && last >= count - OVERSCAN) onEnd?.();
  }, [last, count]);
  function noteEnd(): void {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
    atEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX;
  }
  return (
    <div
      class={`rows ${props.class ?? ""}`}
      ref={box}
      tabIndex={0}
      role="list"
      aria-label={label}
      onScroll={noteEnd}
    >
      <div class="rows-space" style={{ height: `${list.getTotalSize()}px` }} role="presentation">
        {shown.map(({ index, start }) => (
          <div
            key={index}
            class="row-place"
            role="listitem"
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{ height: `${height}px`, transform: `translateY(${start}px)` }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
