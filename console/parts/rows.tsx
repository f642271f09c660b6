import {
  type Component,
  type ComponentChildren,
  createElement,
  type FunctionComponent,
  type VNode,
} from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface RowsProps {
  label: string;
  count: number;
  /** Every row's height in pixels. */
  height: number;
  row: (index: number) => ComponentChildren;
  /** Called when the user scrolls near the end. */
  onEnd?: () => void;
  /** Follows new rows at the end, unless the user has scrolled up. */
  sticky?: boolean;
  /** The index of a row to scroll to. */
  target?: number | undefined;
  class?: string;
}

// Rows that are up to this far outside of the visible part are also drawn, so that scrolling shows no gap. More rows would slow every
// frame.
const OVERSCAN_PX = 160;
// The next page is requested before the end is reached.
const NEAR_END_ROWS = 20;
const NEAR_END_PX = 40;

/**
 * Decides which rows of a list of any length are elements: those in the visible part of `box`. Their positions are calculated, and
 * each has the same height.
 */
export function useDrawnRows(
  { count, height, onEnd }: Pick<RowsProps, "count" | "height" | "onEnd">,
) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [visible, setVisible] = useState(0);
  function measure(): void {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    setTop(Math.floor(scrollTop / height));
    setVisible(Math.ceil(clientHeight / height) + 1);
  }
  useLayoutEffect(() => {
    if (box.current === null) return;
    measure();
    const size = new ResizeObserver(measure);
    size.observe(box.current);
    return () => size.disconnect();
  }, [height]);
  // When a list becomes shorter, this code runs before the browser reports the new scroll position.
  const overscan = Math.ceil(OVERSCAN_PX / height);
  const first = Math.max(0, Math.min(top, count - visible) - overscan);
  const drawn = Math.max(0, Math.min(top + visible + overscan, count) - first);
  const last = first + drawn - 1;
  useEffect(() => {
    if (count > 0 && last >= count - NEAR_END_ROWS) onEnd?.();
  }, [last, count]);
  const space = { height: `${count * height}px`, paddingBlockStart: `${first * height}px` };
  return { box, measure, space, indexes: Array.from({ length: drawn }, (_, at) => first + at) };
}

/** A list of any length. Only the visible rows are elements. */
export function Rows(props: RowsProps) {
  const { label, count, height, row, sticky = false, target } = props;
  const { box, measure, space, indexes } = useDrawnRows(props);
  const atEnd = useRef(true);
  function scrollTo(px: number): void {
    if (box.current !== null) box.current.scrollTop = px;
  }
  useEffect(() => {
    if (sticky && atEnd.current) scrollTo(count * height);
  }, [count]);
  useEffect(() => {
    if (target !== undefined && target < count) {
      scrollTo(target * height - ((box.current?.clientHeight ?? 0) - height) / 2);
    }
  }, [target, target !== undefined && target < count]);
  function onScroll(): void {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
    atEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX;
    measure();
  }
  return (
    <div
      class={`rows ${props.class ?? ""}`}
      ref={box}
      tabIndex={0}
      role="list"
      aria-label={label}
      onScroll={onScroll}
    >
      <div class="rows-space" style={space} role="presentation">
        {indexes.map((index) => (
          <div
            key={index}
            class="row-place"
            role="listitem"
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{ height: `${height}px` }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Draws a component again only when one of its properties has changed, or a signal that it reads. */
export function memo<P extends object>(component: FunctionComponent<P>): (props: P) => VNode {
  return function Memoized(this: Component<P>, props: P): VNode {
    this.shouldComponentUpdate = (next) =>
      (Object.keys(next) as (keyof P)[]).some((name) =>
        next[name] !== this.props[name as keyof typeof this.props]
      );
    return createElement(component as FunctionComponent<object>, props);
  } as (props: P) => VNode;
}
