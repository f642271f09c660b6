import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { ChatMessage } from "../../live/api.ts";

const NEAR_END_PX = 120;

/** Whether a message is the first of its day. */
export function newDay(before: ChatMessage | undefined, message: ChatMessage): boolean {
  return before === undefined || new Date(before.ts).toDateString() !== new Date(message.ts).toDateString();
}

/** What was said, kept at its end unless somebody reads further up. */
export function Thread(
  { count, busy, children }: { count: number; busy: string; children: preact.ComponentChildren },
) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    if (atEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [count, busy]);
  // Buttons of a question, steps and files come after the messages, and a keyboard takes room away.
  useEffect(() => {
    const place = box.current;
    if (place === null) return;
    const resized = new ResizeObserver(() => atEnd.current && place.scrollTo({ top: place.scrollHeight }));
    for (const each of [place, ...place.children]) resized.observe(each);
    return () => resized.disconnect();
  }, []);
  function note(): void {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
    atEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX;
  }
  return (
    <div class="thread" ref={box} onScroll={note} role="log" aria-label="Messages" tabIndex={0}>
      <div class="thread-inner">{children}</div>
    </div>
  );
}
