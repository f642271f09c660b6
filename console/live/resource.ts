import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type JournalEvent, type Page, type Refusal, refusalOf } from "./api.ts";
import { onEvent, onReset } from "./events.ts";

// Events come in bursts; one reading serves all of a burst.
const GATHER_MS = 120;
const BETWEEN_MS = 900;
const RETRY_MS = 3_000;

/** Something read from the API that follows what happens. */
export interface Resource<T> {
  data: T | undefined;
  refusal: Refusal | null;
  reload: () => void;
}

/**
 * Reads something when `key` changes and again when an event touches it. What was read stays while it is read anew, and
 * an unreachable service is asked again.
 */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  touches: (event: JournalEvent) => boolean = () => false,
): Resource<T> {
  const [state, setState] = useState<{ key: string; data?: T; refusal: Refusal | null }>({
    key,
    refusal: null,
  });
  const latest = useRef({ load, touches });
  latest.current = { load, touches };
  const reload = useRef(() => {});
  // Not useEffect(), which waits until the page without its data was drawn.
  useLayoutEffect(() => {
    const gone = new AbortController();
    const reading = gathered(async () => {
      try {
        const data = await latest.current.load(gone.signal);
        if (!gone.signal.aborted) setState({ key, data, refusal: null });
      } catch (error) {
        if (gone.signal.aborted) return;
        const refusal = refusalOf(error);
        setState((before) => before.key === key ? { ...before, refusal } : { key, refusal });
        if (refusal.passing) setTimeout(() => reading.soon(), RETRY_MS);
      }
    });
    reload.current = reading.soon;
    void reading.now();
    const ends = [
      onEvent((event) => latest.current.touches(event) && reading.soon()),
      onReset(() => reading.soon()),
    ];
    return () => {
      gone.abort();
      reading.stop();
      for (const end of ends) end();
    };
  }, [key]);
  const current = state.key === key ? state : { data: undefined, refusal: null };
  return { data: current.data, refusal: current.refusal, reload: () => reload.current() };
}

/** A list that grows at its end when more is wanted, and at its start when something happens. */
export interface LiveList<T> extends Resource<T[]> {
  total: string;
  /** Reads the next page, if there is one. */
  more: () => void;
}

/** As useResource(), for a list of rows with ids, newest first. Another page costs the same, however many there are. */
export function useList<T extends { id: string }>(
  key: string,
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  touches: (event: JournalEvent) => boolean = () => false,
): LiveList<T> {
  const grown = useRef<Grown<T> | null>(null);
  const [, redraw] = useState(0);
  const { data: first, refusal, reload } = useResource(key, (signal) => load(undefined, signal), touches);
  if (grown.current?.key !== key || (first?.next ?? null) === null) grown.current = null;
  if (grown.current !== null && first !== undefined) renew(grown.current, first);
  async function more(): Promise<void> {
    if (first === undefined || first.next === null) return;
    const mine = grown.current ??= { key, first, items: [...first.items], next: first.next, reading: false };
    if (mine.next === null || mine.reading) return;
    mine.reading = true;
    try {
      const page = await load(mine.next, new AbortController().signal);
      mine.items.push(...page.items);
      mine.next = page.next;
    } catch {
      // The next wish for more tries again.
    }
    mine.reading = false;
    redraw((count) => count + 1);
  }
  return {
    data: grown.current?.items ?? first?.items,
    refusal,
    reload,
    total: first?.total ?? "",
    more: () => void more(),
  };
}

/** The first page and those behind it, in one array that only grows. */
interface Grown<T> {
  key: string;
  first: Page<T>;
  items: T[];
  next: string | null;
  reading: boolean;
}

/** Puts the first page, read again, in front. What stood at its end may have been pushed out of it by newer rows, and stays. */
function renew<T extends { id: string }>(grown: Grown<T>, first: Page<T>): void {
  if (grown.first === first) return;
  grown.first = first;
  const last = first.items.at(-1)?.id ?? "";
  const behind = grown.items.findIndex(({ id }) => id < last);
  grown.items.splice(0, behind === -1 ? grown.items.length : behind, ...first.items);
}

/** Work that is wanted often and done seldom: at once, and then once per burst of wishes. */
function gathered(work: () => Promise<void>) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let doneAt = 0;
  let busy = false;
  let wanted = false;
  let stopped = false;
  async function now(): Promise<void> {
    timer = undefined;
    if (busy) return void (wanted = true);
    busy = true;
    await work();
    busy = false;
    doneAt = Date.now();
    if (wanted) soon();
    wanted = false;
  }
  function soon(): void {
    if (stopped || timer !== undefined) return;
    timer = setTimeout(() => void now(), Math.max(GATHER_MS, doneAt + BETWEEN_MS - Date.now()));
  }
  return { now, soon, stop: () => (stopped = true, clearTimeout(timer)) };
}
