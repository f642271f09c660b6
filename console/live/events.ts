import { signal } from "@preact/signals";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { backoffMs } from "../../src/base/backoff.ts";
import type { JournalEvent } from "./api.ts";
import { authed } from "./session.ts";

/** Whether what is shown follows the service at the moment. */
export const linkState = signal<"connecting" | "live" | "broken">("connecting");

type Listener = (event: JournalEvent) => void;
type Said =
  | { say: "event"; event: JournalEvent }
  | { say: "state"; state: typeof linkState.value }
  | { say: "reset" }
  | { say: "hello" };

const LOCK = "svc.events";
const RETRY = { firstMs: 500, lastMs: 10_000 };
// The service sends a comment every 15 s; what is silent for longer is a dead connection.
const SILENT_MAX_MS = 40_000;

const listeners = new Set<Listener>();
const resets = new Set<() => void>();
let lastSeq = 0;
let leading = false;
let channel: BroadcastChannel | null = null;

/** Calls `listener` for everything that happens from now on; answers what ends it. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls `listener` when events may have been missed, so that everything has to be read anew. */
export function onReset(listener: () => void): () => void {
  resets.add(listener);
  return () => resets.delete(listener);
}

/**
 * Follows the journal for as long as the page lives. A browser opens six connections to a host at most, all its tabs together,
 * so one tab holds the stream and tells the others (facts, console 3.5).
 */
export function followEvents(): void {
  if (navigator.locks === undefined) return void followWhileVisible();
  channel = new BroadcastChannel(LOCK);
  channel.onmessage = ({ data }) => hear(data as Said);
  channel.postMessage({ say: "hello" } satisfies Said);
  void navigator.locks.request(LOCK, async () => {
    leading = true;
    await follow(new AbortController().signal);
  });
}

function hear(said: Said): void {
  if (said.say === "hello") {
    if (leading) tell({ say: "state", state: linkState.value });
  } else if (said.say === "state") linkState.value = said.state;
  else if (said.say === "reset") { for (const reset of resets) reset(); }
  else publish(said.event);
}

function tell(said: Said): void {
  channel?.postMessage(said);
}

// Without a secure context there are no locks: then only the tab that is seen has a stream.
async function followWhileVisible(): Promise<void> {
  for (;;) {
    if (document.hidden) {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      continue;
    }
    const hidden = new AbortController();
    const stop = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", stop);
    await follow(hidden.signal);
    document.removeEventListener("visibilitychange", stop);
  }
}

async function follow(signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    if (await read(signal)) failures = 0;
    if (signal.aborted) return;
    become("broken");
    await new Promise((resolve) => setTimeout(resolve, backoffMs(RETRY, ++failures)));
  }
}

/** Reads one connection to its end; answers whether there was one. */
async function read(outer: AbortSignal): Promise<boolean> {
  const silent = new AbortController();
  const signal = AbortSignal.any([outer, silent.signal]);
  let heardAt = Date.now();
  const watch = setInterval(() => Date.now() - heardAt > SILENT_MAX_MS && silent.abort(), 5_000);
  let opened = false;
  try {
    const after = lastSeq === 0 ? "" : `?after=${lastSeq}`;
    const response = await authed(
      new Request(`/api/events${after}`, { headers: { accept: "text/event-stream" }, signal }),
    );
    heardAt = Date.now();
    if (!response.ok || !response.headers.get("content-type")?.startsWith("text/event-stream")) return false;
    opened = true;
    become("live");
    // Nothing was seen yet, so the service could not be asked for what came before this stream was open.
    if (lastSeq === 0) lost();
    const decoder = new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>;
    const heard = new TransformStream<string, string>({
      transform(text, controller) {
        heardAt = Date.now();
        controller.enqueue(text);
      },
    });
    const body = response.body?.pipeThrough(decoder).pipeThrough(heard)
      .pipeThrough(new EventSourceParserStream());
    for await (const { event, data } of body ?? []) {
      if (event === "event") take(JSON.parse(data));
      else if (event === "reset") lost();
    }
  } catch {
    // Broken off: the next connection goes on behind what was seen last.
  } finally {
    clearInterval(watch);
  }
  return opened;
}

function take(event: JournalEvent): void {
  tell({ say: "event", event });
  publish(event);
}

function publish(event: JournalEvent): void {
  lastSeq = Math.max(lastSeq, event.seq);
  for (const listener of listeners) listener(event);
}

function lost(): void {
  lastSeq = 0;
  tell({ say: "reset" });
  for (const reset of resets) reset();
}

function become(state: typeof linkState.value): void {
  linkState.value = state;
  tell({ say: "state", state });
}
