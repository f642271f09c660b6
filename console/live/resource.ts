import { useEffect, useRef, useState } from "preact/hooks";
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
  useEffect(() => {
    const gone = new AbortController();
    const reading = gathered(async () => {
      try {
        const data = await latest.current.load(gone.signal);
        if (!gone.signal.aborted) setState({ key, data, refusal: null });
      } catch (error) {
        if (gone.signal.aborted) return;
        const refusal = refusalOf(error);
        setState((before) => before.key === key ? { ...before, refusal } : { key, refusal });
        if (refusal.status === 0 || refusal.status === 503) setTimeout(() => reading.soon(), RETRY_MS);
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

/** As useResource(), for a list of rows with ids, newest first. */
export function useList<T extends { id: string }>(
  key: string,
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  touches: (event: JournalEvent) => boolean = () => false,
): LiveList<T> {
  const older = useRef<Older<T> | null>(null);
  const [, redraw] = useState(0);
  const first = useResource(key, (signal) => load(undefined, signal), touches);
  if (older.current?.key !== key) older.current = null;
  const start = first.data?.items ?? [];
  const last = start.at(-1)?.id;
  const tail = (first.data?.next ?? null) === null || last === undefined
    ? []
    : older.current?.items.filter((item) => item.id < last) ?? [];
  const next = older.current === null ? first.data?.next ?? null : older.current.next;
  async function more(): Promise<void> {
    if (next === null || older.current?.reading) return;
    const mine: Older<T> = older.current = {
      key,
      // What stood at the end of the first page may be pushed out of it by newer rows.
      items: [...start, ...tail],
      next,
      reading: true,
    };
    try {
      const page = await load(next, new AbortController().signal);
      mine.items = [...mine.items, ...page.items];
      mine.next = page.next;
    } catch {
      // The next wish for more tries again.
    }
    mine.reading = false;
    redraw((count) => count + 1);
  }
  return {
    data: first.data === undefined ? undefined : [...start, ...tail],
    refusal: first.refusal,
    reload: first.reload,
    total: first.data?.total ?? "",
    more: () => void more(),
  };
}

interface Older<T> {
  key: string;
  items: T[];
  next: string | null;
  reading: boolean;
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
