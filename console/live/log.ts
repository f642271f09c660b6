import { useEffect, useState } from "preact/hooks";
import { api, ask, type Refusal, refusalFrom, refusalOf } from "./api.ts";
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
// A log that is read anew replaces the one that is seen only with most of its lines.
const SHOW_AGAIN_MS = 1_000;
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
      executionId,
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

/** Shows a log to the end of its run. An answer also ends with its token, or with the service: then there is another. */
async function follow(id: string, url: string, signal: AbortSignal, show: (log: Log) => void): Promise<void> {
  let over = false;
  for (let waitMs = 0; !signal.aborted; waitMs = SHOW_AGAIN_MS) {
    while (document.hidden && !signal.aborted) await seen();
    const hidden = new AbortController();
    const stop = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", stop);
    const either = AbortSignal.any([signal, hidden.signal]);
    try {
      const { lines, whole } = await read(url, either, waitMs, show);
      const ended = whole || over;
      show({ lines, ended, refusal: null });
      if (ended) return;
      // The run may have ended after its answer did: what it wrote between is in the next answer.
      over = !await goesOn(id, either);
      if (!over) await pause();
    } catch (error) {
      if (signal.aborted) return;
      if (!hidden.signal.aborted) {
        const refusal = refusalOf(error);
        const final = refusal.status >= 400 && refusal.status < 500 && !refusal.passing;
        if (final) return show({ ...NONE, ended: true, refusal });
        await pause();
      }
    } finally {
      document.removeEventListener("visibilitychange", stop);
    }
  }
}

/**
 * Reads one answer to its end; each reading starts with the first line, so that nothing shows twice. `whole`: its run had
 * ended before, so that there is no more. Shows nothing in the first `waitMs`.
 */
async function read(
  url: string,
  signal: AbortSignal,
  waitMs: number,
  show: (log: Log) => void,
): Promise<{ lines: string[]; whole: boolean }> {
  const response = await authed(new Request(url, { signal }));
  if (!response.ok) throw refusalFrom(response.status, await response.json().catch(() => null));
  const gathered = new Lines();
  const shown = later(waitMs, () => show({ lines: gathered.all(), ended: false, refusal: null }));
  try {
    let sliceAt = performance.now();
    const decoder = new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>;
    for await (const text of response.body?.pipeThrough(decoder) ?? []) {
      gathered.add(text);
      shown.want();
      if (performance.now() - sliceAt <= SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      sliceAt = performance.now();
    }
  } finally {
    shown.stop();
  }
  // Only the log of an ended run may be kept by a browser (interface 4.1).
  return { lines: gathered.all(), whole: response.headers.get("cache-control") !== "no-store" };
}

/** Does something once for all wishes of a moment, the last ones too; for the first after `waitMs`. */
function later(waitMs: number, work: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  function now(): void {
    timer = undefined;
    waitMs = SHOW_MS;
    work();
  }
  return { want: () => void (timer ??= setTimeout(now, waitMs)), stop: () => clearTimeout(timer) };
}

async function goesOn(id: string, signal: AbortSignal): Promise<boolean> {
  const call = api.GET("/api/executions/{id}", { params: { path: { id } }, signal });
  const { status } = await ask(call);
  return status === "pending" || status === "running";
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, RETRY_MS));
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
