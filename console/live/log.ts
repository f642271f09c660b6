import { useEffect, useState } from "preact/hooks";
import { type Refusal, refusalFrom, refusalOf } from "./api.ts";
import { authed } from "./session.ts";

/** The lines of a log so far. */
export interface Log {
  lines: readonly string[];
  /** Whether there will be no more. */
  ended: boolean;
  refusal: Refusal | null;
}

/** What is shown of one line; the rest is in the raw log. */
const LINE_MAX_CHARACTERS = 10_000;

const NONE: Log = { lines: [], ended: false, refusal: null };
const RETRY_MS = 2_000;
const SHOW_MS = 100;
// The pieces of a long log are all here at once: after so long others have their turn.
const SLICE_MS = 8;

/** The log of an execution, live until it ends. Only while the tab is seen: a stream costs one of six connections. */
export function useLog(executionId: string, options: { raw?: boolean; tail?: number } = {}): Log {
  const [log, setLog] = useState<Log>(NONE);
  const { raw = false, tail } = options;
  useEffect(() => {
    if (executionId === "") return;
    setLog(NONE);
    const gone = new AbortController();
    void follow(
      `/api/executions/${executionId}/logs?follow=true${raw ? "&raw=true" : ""}${
        tail === undefined ? "" : `&tail=${tail}`
      }`,
      gone.signal,
      setLog,
    );
    return () => gone.abort();
  }, [executionId, raw, tail]);
  return log;
}

async function follow(url: string, signal: AbortSignal, show: (log: Log) => void): Promise<void> {
  while (!signal.aborted) {
    while (document.hidden && !signal.aborted) await seen();
    const hidden = new AbortController();
    const stop = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", stop);
    try {
      if (await read(url, AbortSignal.any([signal, hidden.signal]), show)) return;
    } catch (error) {
      if (signal.aborted) return;
      if (!hidden.signal.aborted) {
        const refusal = refusalOf(error);
        if (refusal.status >= 400 && refusal.status < 500) return show({ ...NONE, ended: true, refusal });
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    } finally {
      document.removeEventListener("visibilitychange", stop);
    }
  }
}

/** Reads one answer to its end; each reading starts with the first line, so that nothing shows twice. */
async function read(url: string, signal: AbortSignal, show: (log: Log) => void): Promise<boolean> {
  const response = await authed(new Request(url, { signal }));
  if (!response.ok) throw refusalFrom(response.status, await response.json().catch(() => null));
  const gathered = new Lines();
  let shownAt = 0;
  let sliceAt = performance.now();
  const decoder = new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>;
  for await (const text of response.body?.pipeThrough(decoder) ?? []) {
    gathered.add(text);
    if (performance.now() - sliceAt > SLICE_MS) {
      await new Promise((resolve) => setTimeout(resolve));
      sliceAt = performance.now();
    }
    if (Date.now() - shownAt < SHOW_MS) continue;
    shownAt = Date.now();
    show({ lines: gathered.all(), ended: false, refusal: null });
  }
  show({ lines: gathered.all(), ended: true, refusal: null });
  return true;
}

/** Lines out of pieces of text. A line that goes on and on is kept by its start, with how much there was. */
export class Lines {
  readonly #done: string[] = [];
  #open = "";
  #left = 0;

  /** Takes the next piece. */
  add(text: string): void {
    const parts = text.split("\n");
    parts.forEach((part, index) => {
      if (index > 0) this.#end();
      const room = LINE_MAX_CHARACTERS - this.#open.length;
      this.#open += part.slice(0, Math.max(0, room));
      this.#left += Math.max(0, part.length - Math.max(0, room));
    });
  }

  /** Every line so far, the unfinished last one too. */
  all(): string[] {
    return this.#open === "" ? [...this.#done] : [...this.#done, this.#shown()];
  }

  #end(): void {
    this.#done.push(this.#shown());
    this.#open = "";
    this.#left = 0;
  }

  #shown(): string {
    return this.#left === 0
      ? this.#open
      : `${this.#open} … and ${this.#left.toLocaleString("en")} more characters`;
  }
}

function seen(): Promise<void> {
  return new Promise((resolve) =>
    document.addEventListener("visibilitychange", () => resolve(), { once: true })
  );
}
