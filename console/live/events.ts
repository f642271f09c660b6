import { signal } from "@preact/signals";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { backoffMs } from "../../src/base/backoff.ts";
import type { components } from "#schema";
import { sendAuthorized } from "./session.ts";

type JournalEvent = components["schemas"]["Event"];

export const linkState = signal<"connecting" | "live" | "broken">("connecting");

type Listener = (event: JournalEvent) => void;
/** A message between the tabs of this browser. */
type TabMessage =
  | { type: "event"; event: JournalEvent }
  | { type: "state"; state: typeof linkState.value }
  | { type: "reset" }
  | { type: "hello" };

const LOCK = "svc.events";
const RETRY = { firstMs: 500, lastMs: 10_000 };
// The service sends a comment every 15 s, so a longer silence means a dead connection.
const SILENT_MAX_MS = 40_000;

const listeners = new Set<Listener>();
const resets = new Set<() => void>();
let lastSeq = 0;
let leading = false;
let channel: BroadcastChannel | null = null;

/** Calls `listener` for every new event. Returns a function that removes it. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls `listener` when events may be missing, so that it reads its data again. */
export function onReset(listener: () => void): () => void {
  resets.add(listener);
  return () => resets.delete(listener);
}

/**
 * Follows the journal while the page lives. All tabs of a browser share six connections to a host, so one tab holds the stream
 * and forwards it to the others.
 */
export function openEventStream(): void {
  if (navigator.locks === undefined) return void followWhileVisible();
  channel = new BroadcastChannel(LOCK);
  channel.onmessage = ({ data }) => receive(data as TabMessage);
  channel.postMessage({ type: "hello" } satisfies TabMessage);
  void navigator.locks.request(LOCK, async () => {
    leading = true;
    await follow(new AbortController().signal);
  });
}

function receive(message: TabMessage): void {
  if (message.type === "hello") {
    if (leading) broadcast({ type: "state", state: linkState.value });
  } else if (message.type === "state") linkState.value = message.state;
  else if (message.type === "reset") { for (const listener of resets) listener(); }
  else publish(message.event);
}

function broadcast(message: TabMessage): void {
  channel?.postMessage(message);
}

// Locks need a secure context. Without them only a visible tab has a stream.
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
    setLinkState("broken");
    await new Promise((resolve) => setTimeout(resolve, backoffMs(RETRY, ++failures)));
  }
}

/** Reads one connection to its end. Returns whether the service accepted it. */
async function read(outer: AbortSignal): Promise<boolean> {
  const silent = new AbortController();
  const signal = AbortSignal.any([outer, silent.signal]);
  let receivedAt = Date.now();
  const watch = setInterval(() => Date.now() - receivedAt > SILENT_MAX_MS && silent.abort(), 5_000);
  let opened = false;
  try {
    const after = lastSeq === 0 ? "" : `?after=${lastSeq}`;
    const response = await sendAuthorized(
      new Request(`/api/events${after}`, { headers: { accept: "text/event-stream" }, signal }),
    );
    receivedAt = Date.now();
    if (!response.ok || !response.headers.get("content-type")?.startsWith("text/event-stream")) return false;
    opened = true;
    setLinkState("live");
    // Without a sequence number the stream cannot repeat the events from before it was open.
    if (lastSeq === 0) reset();
    const decoder = new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>;
    const watched = new TransformStream<string, string>({
      transform(text, controller) {
        receivedAt = Date.now();
        controller.enqueue(text);
      },
    });
    const body = response.body?.pipeThrough(decoder).pipeThrough(watched)
      .pipeThrough(new EventSourceParserStream());
    for await (const { event, data } of body ?? []) {
      if (event === "event") accept(JSON.parse(data));
      else if (event === "reset") reset();
    }
  } catch {
    // The next connection continues after the last event.
  } finally {
    clearInterval(watch);
  }
  return opened;
}

function accept(event: JournalEvent): void {
  broadcast({ type: "event", event });
  publish(event);
}

function publish(event: JournalEvent): void {
  lastSeq = Math.max(lastSeq, event.seq);
  for (const listener of listeners) listener(event);
}

function reset(): void {
  lastSeq = 0;
  broadcast({ type: "reset" });
  for (const listener of resets) listener();
}

function setLinkState(state: typeof linkState.value): void {
  linkState.value = state;
  broadcast({ type: "state", state });
}
