import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

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

// Drawn on either side of what is in sight, so that a scroll shows no gap; a fast one pays for them in every frame.
const BESIDE_PX = 160;
// More is asked for before the end is reached.
const NEAR_END_ROWS = 20;
const NEAR_END_PX = 40;

/** A list of any length: only the rows in sight are elements, and where they stand is a sum (facts, console 3.1). */
export function Rows(props: RowsProps) {
  const { label, count, height, row, onEnd, sticky = false, target } = props;
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(0);
  function look(): void {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    setTop(Math.floor(scrollTop / height));
    setRoom(Math.ceil(clientHeight / height) + 1);
  }
  function scrollTo(px: number): void {
    if (box.current !== null) box.current.scrollTop = px;
  }
  useLayoutEffect(() => {
    if (box.current === null) return;
    look();
    const size = new ResizeObserver(look);
    size.observe(box.current);
    return () => size.disconnect();
  }, [height]);
  useEffect(() => {
    if (sticky && atEnd.current) scrollTo(count * height);
  }, [count]);
  useEffect(() => {
    if (target !== undefined && target < count) {
      scrollTo(target * height - ((box.current?.clientHeight ?? 0) - height) / 2);
    }
  }, [target, target !== undefined && target < count]);
  // A list that has become shorter is drawn before the browser has said where it stands now.
  const beside = Math.ceil(BESIDE_PX / height);
  const first = Math.max(0, Math.min(top, count - room) - beside);
  const shown = Math.max(0, Math.min(top + room + beside, count) - first);
  const last = first + shown - 1;
  useEffect(() => {
    if (count > 0 && last >= count - NEAR_END_ROWS) onEnd?.();
  }, [last, count]);
  function onScroll(): void {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
    atEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX;
    look();
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
      <div
        class="rows-space"
        style={{ height: `${count * height}px`, paddingBlockStart: `${first * height}px` }}
        role="presentation"
      >
        {Array.from({ length: shown }, (_, at) => (
          <div
            key={first + at}
            class="row-place"
            role="listitem"
            aria-setsize={count}
            aria-posinset={first + at + 1}
            style={{ height: `${height}px` }}
          >
            {row(first + at)}
          </div>
        ))}
      </div>
    </div>
  );
}
