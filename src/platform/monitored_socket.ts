import { type Clock, sleep } from "../base/clock.ts";
import type { Connection } from "./connection.ts";
import { openWire, type Wire } from "./websocket.ts";

const HELLO_MS = 15_000;
/** A connection that is silent for so many of its pings is dead (contract 10.4). */
const SILENT_PINGS = 2.5;
// After a platform said that it will close a socket, what is on its way still comes over it.
const LINGER_MS = 2_000;
// What a stop finds on its way into the store has so long to get there.
const STOP_MS = 2_000;

/** A socket, as those who take its messages see it. */
export interface Socket {
  send(data: string | Uint8Array): void;
  /** The platform listens. */
  ready(): void;
  /** The next one is to be opened; this one stays open for some seconds. */
  next(): void;
  /** How often we ask from now on whether somebody is there, in ms. */
  pingEvery(ms: number): void;
}

interface Listening {
  /** As people know it, for messages. */
  platform: string;
  url: string;
  clock: Clock;
  connection: Connection;
  signal: AbortSignal;
  pingMs: number;
  /** Asks whether somebody is there, where the platform has its own form of it. */
  ping?: (wire: Pick<Wire, "send">) => void;
  /** It is ready when it is open, without a word of the platform. */
  isReadyWhenOpen?: boolean;
  /** What is said first, when it is open. */
  greet?: (socket: Socket) => void;
  /** One after the other, as they came. An error ends the socket: what was not acknowledged comes again. */
  take: (data: Uint8Array, socket: Socket) => Promise<void>;
}

/**
 * Listens on one socket. It resolves when the next one is to be opened, and the old one stays open for some seconds then; it throws
 * when the socket is gone, or silent for too long (contract 10.4).
 */
export async function listen(listening: Listening): Promise<void> {
  const { platform, url, clock, signal } = listening;
  const wire = await openWire(url, HELLO_MS);
  const end = () => wire.terminate();
  signal.addEventListener("abort", end, { once: true });
  const watching = new AbortController();
  let handled = () => Promise.resolve();
  try {
    await new Promise<void>((resolve, reject) => {
      const watch = attend(listening, wire, { resolve, reject });
      handled = () => watch.handling;
      wire.on("error", (error) => reject(new Error(`${platform}: ${error.message}`)));
      wire.on("close", () => reject(new Error(`${platform} closed the connection`)));
      void silence(listening, wire, watch, AbortSignal.any([signal, watching.signal])).then((ms) => {
        reject(new Error(`${platform} was silent for ${Math.round(ms / 1000)} s`));
      });
    });
    // The next one is opened first.
    void sleep(clock, LINGER_MS, signal).then(() => wire.close());
  } catch (error) {
    wire.terminate();
    if (signal.aborted) await settled(handled(), clock);
    throw error;
  } finally {
    watching.abort();
    signal.removeEventListener("abort", end);
  }
}

async function settled(handling: Promise<void>, clock: Clock): Promise<void> {
  const over = new AbortController();
  await Promise.race([handling.catch(() => {}), sleep(clock, STOP_MS, over.signal)]);
  over.abort();
}

/** When something came last, and how long it may be silent. */
interface Watch {
  lastAt: number;
  pingMs: number;
  isReady: boolean;
  /** Resolves when all that came so far is taken. */
  handling: Promise<void>;
}

function attend(
  { clock, connection, pingMs, take, isReadyWhenOpen = false, greet }: Listening,
  wire: Wire,
  { resolve, reject }: { resolve: () => void; reject: (error: unknown) => void },
): Watch {
  const watch: Watch = { lastAt: clock.monotonic(), pingMs, isReady: false, handling: Promise.resolve() };
  const seen = () => watch.lastAt = clock.monotonic();
  const socket: Socket = {
    send: (data) => wire.send(data),
    ready: () => {
      watch.isReady = true;
      connection.become("connected");
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
  wire.on("message", (data) => {
    seen();
    const bytes = data as unknown as Uint8Array;
    // After an error nothing more is taken: what follows comes again, too, and in its order.
    watch.handling = watch.handling.then(() => take(bytes, socket));
    watch.handling.catch(reject);
  });
  return watch;
}

/** Resolves when the connection is silent, with how long it was. */
async function silence(
  { clock, ping = (wire) => wire.ping() }: Omit<Listening, "ping"> & { ping?: (wire: Wire) => void },
  wire: Wire,
  watch: Watch,
  signal: AbortSignal,
): Promise<number> {
  const limit = () => watch.isReady ? SILENT_PINGS * watch.pingMs : HELLO_MS;
  while (!signal.aborted && clock.monotonic() - watch.lastAt <= limit()) {
    try {
      if (watch.isReady) ping(wire);
    } catch {
      // It is closing.
    }
    await sleep(clock, watch.isReady ? watch.pingMs : Math.min(watch.pingMs, HELLO_MS), signal);
  }
  return limit();
}
