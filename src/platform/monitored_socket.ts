import { type Clock, sleep } from "../base/clock.ts";
import type { Connection } from "./connection.ts";
import { openWire, type Wire } from "./websocket.ts";

const HELLO_MS = 15_000;
/** A connection is dead after a silence of this many ping intervals. */
const SILENT_PINGS = 2.5;
// A socket that the platform replaces still gets the messages that are in transit.
const LINGER_MS = 2_000;
// Time for open writes to the database at a stop.
const STOP_MS = 2_000;
// A platform sends unacknowledged messages again, so a longer queue of them is of no use.
const QUEUED_MESSAGES = 10_000;
const QUEUED_BYTES = 64 * 1024 * 1024;

export interface Socket {
  send(data: string | Uint8Array): void;
  /** Reports that the platform accepted the connection. */
  ready(): void;
  /** Makes listen() return. The socket stays open for some seconds. */
  next(): void;
  pingEvery(ms: number): void;
}

interface ListenOptions {
  /** Name of the platform in errors. */
  platform: string;
  url: string;
  clock: Clock;
  connection: Connection;
  signal: AbortSignal;
  pingMs: number;
  /** Sends a ping in the form of the platform. Default: a ping of WebSocket. */
  ping?: (wire: Wire) => void;
  /** The platform accepts a connection without a message. */
  isReadyWhenOpen?: boolean;
  /** Sends the first message. */
  greet?: (socket: Socket) => void;
  /** Takes one message at a time, in order. An error ends the socket: the platform sends unacknowledged messages again. */
  take: (data: Uint8Array, socket: Socket) => Promise<void>;
}

/**
 * Listens on one socket. Resolves when the platform wants the next socket; the old one stays open for some seconds. Throws when the
 * socket ends or is silent for too long.
 */
export async function listen(options: ListenOptions): Promise<void> {
  const { platform, url, clock, signal } = options;
  const wire = await openWire(url, HELLO_MS);
  const end = () => wire.terminate();
  signal.addEventListener("abort", end, { once: true });
  const watching = new AbortController();
  let handled = () => Promise.resolve();
  try {
    await new Promise<void>((resolve, reject) => {
      const watch = watchSocket(options, wire, { resolve, reject });
      handled = () => watch.handling;
      wire.on("error", (error) => reject(new Error(`${platform}: ${error.message}`)));
      wire.on("close", () => reject(new Error(`${platform} closed the connection`)));
      void waitForSilence(options, wire, watch, AbortSignal.any([signal, watching.signal])).then((ms) => {
        reject(new Error(`${platform} was silent for ${Math.round(ms / 1000)} s`));
      });
    });
    // The caller opens the next socket first.
    void sleep(clock, LINGER_MS, signal).then(() => wire.close());
  } catch (error) {
    wire.terminate();
    if (signal.aborted) await waitForWrites(handled(), clock);
    throw error;
  } finally {
    watching.abort();
    signal.removeEventListener("abort", end);
  }
}

async function waitForWrites(handling: Promise<void>, clock: Clock): Promise<void> {
  const ended = new AbortController();
  await Promise.race([handling.catch(() => {}), sleep(clock, STOP_MS, ended.signal)]);
  ended.abort();
}

interface Watch {
  lastAt: number;
  pingMs: number;
  isReady: boolean;
  /** Resolves when the caller has taken all messages so far. */
  handling: Promise<void>;
}

function watchSocket(
  { platform, clock, connection, pingMs, take, isReadyWhenOpen = false, greet }: ListenOptions,
  wire: Wire,
  { resolve, reject }: { resolve: () => void; reject: (error: unknown) => void },
): Watch {
  const watch: Watch = { lastAt: clock.monotonic(), pingMs, isReady: false, handling: Promise.resolve() };
  const seen = () => watch.lastAt = clock.monotonic();
  const socket: Socket = {
    send: (data) => wire.send(data),
    ready: () => {
      watch.isReady = true;
      connection.setState("connected");
    },
    next: resolve,
    pingEvery: (ms) => watch.pingMs = ms,
  };
  wire.on("ping", seen);
  wire.on("pong", seen);
  wire.on("open", () => {
    if (isReadyWhenOpen) socket.ready();
    greet?.(socket);
  });
  const queue = { messages: 0, bytes: 0, isFull: false };
  wire.on("message", (data) => {
    seen();
    if (queue.isFull) return;
    const bytes = data as unknown as Uint8Array;
    queue.messages++;
    queue.bytes += bytes.length;
    if (queue.messages > QUEUED_MESSAGES || queue.bytes > QUEUED_BYTES) {
      queue.isFull = true;
      return reject(new Error(`${platform} sent messages faster than the service can take them`));
    }
    // After an error, later messages wait for the next connection, which keeps their order.
    watch.handling = watch.handling.then(async () => {
      if (queue.isFull) return;
      await take(bytes, socket);
      queue.messages--;
      queue.bytes -= bytes.length;
    });
    watch.handling.catch(reject);
  });
  return watch;
}

/** Waits until the connection is silent. Returns the limit in ms. */
async function waitForSilence(
  { clock, ping = (wire) => wire.ping() }: ListenOptions,
  wire: Wire,
  watch: Watch,
  signal: AbortSignal,
): Promise<number> {
  const limit = () => watch.isReady ? SILENT_PINGS * watch.pingMs : HELLO_MS;
  while (!signal.aborted && clock.monotonic() - watch.lastAt <= limit()) {
    try {
      if (watch.isReady) ping(wire);
    } catch {
      // The socket is closing.
    }
    await sleep(clock, watch.isReady ? watch.pingMs : Math.min(watch.pingMs, HELLO_MS), signal);
  }
  return limit();
}
