import { useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  type Answer,
  api,
  buildQuery,
  type GetData,
  type GetParams,
  type GetPath,
  type ListFilters,
  type ListPath,
  type ListRow,
  load,
  loadAll,
  loadPage,
  type Page,
} from "./api.ts";
import { type ApiError, toApiError } from "./api_error.ts";
import { onEvent, onReset } from "./events.ts";
import { type EventFilter, isMatch } from "./follow.ts";

// Events come in bursts, and each burst causes one request.
const GATHER_MS = 120;
const BETWEEN_MS = 900;
const RETRY_MS = 3_000;

/** Data of the API that is read again after matching events. */
export interface Resource<T> {
  data: T | undefined;
  error: ApiError | null;
  reload: () => void;
}

/**
 * Reads data when `key` changes and again after an event that `touches` selects. The old data stays until the new data is
 * here, and a request that an unreachable service missed is repeated.
 */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  touches: EventFilter = () => false,
): Resource<T> {
  const [state, setState] = useState<{ key: string; data?: T; error: ApiError | null }>({
    key,
    error: null,
  });
  const latest = useRef({ load, touches });
  latest.current = { load, touches };
  const reload = useRef(() => {});
  // useEffect() would start the request only after the browser has drawn the page without data.
  useLayoutEffect(() => {
    const gone = new AbortController();
    const reading = debounce(async () => {
      try {
        const data = await latest.current.load(gone.signal);
        if (!gone.signal.aborted) setState({ key, data, error: null });
      } catch (error) {
        if (gone.signal.aborted) return;
        const failure = toApiError(error);
        setState((before) => before.key === key ? { ...before, error: failure } : { key, error: failure });
        if (failure.temporary) setTimeout(() => reading.soon(), RETRY_MS);
      }
    });
    reload.current = reading.soon;
    void reading.now();
    const ends = [
      onEvent((event) => isMatch(latest.current.touches, event) && reading.soon()),
      onReset(() => reading.soon()),
    ];
    return () => {
      gone.abort();
      reading.stop();
      for (const end of ends) end();
    };
  }, [key]);
  const current = state.key === key ? state : { data: undefined, error: null };
  return { data: current.data, error: current.error, reload: () => reload.current() };
}

/** Like useResource(), for a GET request of the API. */
export function useGet<P extends GetPath>(
  path: P,
  params: GetParams<P>,
  touches?: EventFilter,
): Resource<GetData<P>> {
  return useResource(
    `${path} ${JSON.stringify(params)}`,
    (signal) => load(api.GET(path, { params, signal } as never)) as Promise<GetData<P>>,
    touches,
  );
}

/** A list that grows at its end by more(), and at its start after events. */
export interface LiveList<T> extends Resource<T[]> {
  total: string;
  more: () => void;
}

/** Does the same as useResource() for every row of a list. */
export function useAll<P extends ListPath<unknown>>(
  path: P,
  filters: ListFilters<P>,
  touches?: EventFilter,
): Resource<ListRow<P, unknown>[]> {
  return useResource(
    `${path} ${JSON.stringify(filters)}`,
    (signal) => loadAll((cursor) => requestPage<P, unknown>(path, filters, cursor, signal)),
    touches,
  );
}

/** Like useAll(), but page by page, for a list with the newest rows first. Every page costs the same. */
export function useList<P extends ListPath>(
  path: P,
  filters: ListFilters<P>,
  touches?: EventFilter,
  pathParams: Record<string, string> = {},
): LiveList<ListRow<P>> {
  type Row = ListRow<P>;
  const key = `${path} ${JSON.stringify([filters, pathParams])}`;
  const load = (cursor: string | undefined, signal: AbortSignal) =>
    loadPage(requestPage(path, filters, cursor, signal, pathParams));
  const grown = useRef<PagedList<Row> | null>(null);
  const [, redraw] = useState(0);
  const { data: first, error, reload } = useResource(key, (signal) => load(undefined, signal), touches);
  if (grown.current?.key !== key || (first?.next ?? null) === null) grown.current = null;
  if (grown.current !== null && first !== undefined) replaceFirstPage(grown.current, first);
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
      // The next call of more() tries again.
    }
    mine.reading = false;
    redraw((count) => count + 1);
  }
  return {
    data: grown.current?.items ?? first?.items,
    error,
    reload,
    total: first?.total ?? "",
    more: () => void more(),
  };
}

function requestPage<P extends GetPath, Row = { id: string }>(
  path: P,
  filters: ListFilters<P>,
  cursor: string | undefined,
  signal: AbortSignal,
  pathParams: Record<string, string> = {},
) {
  const params = { path: pathParams, query: buildQuery(filters as Record<string, string>, cursor) };
  return api.GET(path, { params, signal } as never) as unknown as Promise<Answer<ListRow<P, Row>[]>>;
}

/** All loaded pages in one array, the first page first. */
interface PagedList<T> {
  key: string;
  first: Page<T>;
  items: T[];
  next: string | null;
  reading: boolean;
}

/** Replaces the first page. The rows that were on it before stay in the list, after the new ones. */
function replaceFirstPage<T extends { id: string }>(grown: PagedList<T>, first: Page<T>): void {
  if (grown.first === first) return;
  grown.first = first;
  const last = first.items.at(-1)?.id ?? "";
  const behind = grown.items.findIndex(({ id }) => id < last);
  grown.items.splice(0, behind === -1 ? grown.items.length : behind, ...first.items);
}

/** Runs `work` immediately, and then once per burst of requests. */
function debounce(work: () => Promise<void>) {
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
