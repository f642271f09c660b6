import { useEffect, useState } from "preact/hooks";
import { api, load, parseProblem } from "./api.ts";
import { type ApiError, toApiError } from "./api_error.ts";
import { sendAuthorized } from "./session.ts";

export interface Log {
  lines: readonly string[];
  /** Whether the log is complete. */
  ended: boolean;
  error: ApiError | null;
}

// The rest of a longer line is in the raw log.
const LINE_MAX_CHARACTERS = 10_000;

const NONE: Log = { lines: [], ended: false, error: null };
const RETRY_MS = 2_000;
const SHOW_MS = 100;
// A log that is read again replaces the visible one only when most of its lines have arrived.
const SHOW_AGAIN_MS = 1_000;
// While a long log arrives, the page pauses after this time, so that it stays responsive.
const SLICE_MS = 8;

/** Follows the log of an execution until it ends. A hidden tab closes the stream, one of six connections to the host. */
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

/** Shows a log until its run ends. When the token expires or the service stops, the response ends early and is requested again. */
async function follow(id: string, url: string, signal: AbortSignal, show: (log: Log) => void): Promise<void> {
  let finished = false;
  for (let waitMs = 0; !signal.aborted; waitMs = SHOW_AGAIN_MS) {
    while (document.hidden && !signal.aborted) await becomeVisible();
    const hidden = new AbortController();
    const stop = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", stop);
    const either = AbortSignal.any([signal, hidden.signal]);
    try {
      const { lines, complete } = await read(url, either, waitMs, show);
      const ended = complete || finished;
      show({ lines, ended, error: null });
      if (ended) return;
      // If the run ended after the response, only the next response has the last lines.
      finished = !await isActive(id, either);
      if (!finished) await pause();
    } catch (error) {
      if (signal.aborted) return;
      if (!hidden.signal.aborted) {
        const failure = toApiError(error);
        const final = failure.status >= 400 && failure.status < 500 && !failure.temporary;
        if (final) return show({ ...NONE, ended: true, error: failure });
        await pause();
      }
    } finally {
      document.removeEventListener("visibilitychange", stop);
    }
  }
}

/**
 * Reads one answer to its end, from the first line, so that no line shows twice. `complete`: its run had ended before, so no
 * line is missing. Shows nothing in the first `waitMs`.
 */
async function read(
  url: string,
  signal: AbortSignal,
  waitMs: number,
  show: (log: Log) => void,
): Promise<{ lines: string[]; complete: boolean }> {
  const response = await sendAuthorized(new Request(url, { signal }));
  if (!response.ok) throw parseProblem(response.status, await response.json().catch(() => null));
  const collected = new Lines();
  const display = debounce(waitMs, () => show({ lines: collected.all(), ended: false, error: null }));
  try {
    let sliceAt = performance.now();
    const decoder = new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>;
    for await (const text of response.body?.pipeThrough(decoder) ?? []) {
      collected.add(text);
      display.request();
      if (performance.now() - sliceAt <= SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      sliceAt = performance.now();
    }
  } finally {
    display.stop();
  }
  // Only the log of an ended run may be cached (interface 4.1).
  return { lines: collected.all(), complete: response.headers.get("cache-control") !== "no-store" };
}

/** Runs `work` once per burst of requests, the first time after `waitMs`. */
function debounce(waitMs: number, work: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  function now(): void {
    timer = undefined;
    waitMs = SHOW_MS;
    work();
  }
  return { request: () => void (timer ??= setTimeout(now, waitMs)), stop: () => clearTimeout(timer) };
}

async function isActive(id: string, signal: AbortSignal): Promise<boolean> {
  const call = api.GET("/api/executions/{id}", { params: { path: { id } }, signal });
  const { status } = await load(call);
  return status === "pending" || status === "running";
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, RETRY_MS));
}

/** Splits pieces of text into lines. Keeps only the start and the length of a very long line. */
export class Lines {
  readonly #done: string[] = [];
  #open = "";
  #cut = 0;

  add(text: string): void {
    const parts = text.split("\n");
    parts.forEach((part, index) => {
      if (index > 0) this.#end();
      const free = LINE_MAX_CHARACTERS - this.#open.length;
      this.#open += part.slice(0, Math.max(0, free));
      this.#cut += Math.max(0, part.length - Math.max(0, free));
    });
  }

  /** Every line so far, including an unfinished last one. */
  all(): string[] {
    return this.#open === "" ? [...this.#done] : [...this.#done, this.#format()];
  }

  #end(): void {
    this.#done.push(this.#format());
    this.#open = "";
    this.#cut = 0;
  }

  #format(): string {
    return this.#cut === 0
      ? this.#open
      : `${this.#open} … and ${this.#cut.toLocaleString("en")} more characters`;
  }
}

function becomeVisible(): Promise<void> {
  return new Promise((resolve) =>
    document.addEventListener("visibilitychange", () => resolve(), { once: true })
  );
}
