import { type Clock, sleep } from "../../base/clock.ts";
import type { Connection } from "../connection.ts";
import { openWire, type Wire } from "../wire.ts";
import { SlackError } from "./client.ts";
import type { Envelope } from "./message.ts";

const HELLO_MS = 15_000;
/** How often we ask; a socket that is silent for 2.5 times as long is dead (contract 10.4). */
const PING_MS = 10_000;
const SILENT_MS = 2.5 * PING_MS;
// After Slack said that it will close a socket, what is on its way still comes over it.
const LINGER_MS = 2_000;

interface Listening {
  url: string;
  clock: Clock;
  connection: Connection;
  /** Stores what came; only then is it acknowledged. */
  handle: (envelope: Envelope) => Promise<void>;
  signal: AbortSignal;
}

/**
 * Listens on one socket. It resolves when the next one is to be opened, and the old one stays open for some seconds then; it throws
 * when the socket is gone.
 */
export async function listen({ url, clock, connection, handle, signal }: Listening): Promise<void> {
  const wire = await openWire(url, HELLO_MS);
  const end = () => wire.terminate();
  signal.addEventListener("abort", end, { once: true });
  const watching = new AbortController();
  let lastAt = clock.monotonic();
  let isReady = false;
  // One after the other, as they came.
  let handling = Promise.resolve();
  try {
    await new Promise<void>((resolve, reject) => {
      const seen = () => lastAt = clock.monotonic();
      wire.on("ping", seen);
      wire.on("pong", seen);
      wire.on("error", (error) => reject(error));
      wire.on("close", () => reject(new Error("Slack closed the connection")));
      wire.on("message", (data) => {
        seen();
        const frame = JSON.parse(data.toString());
        if (frame.type === "hello") {
          isReady = true;
          connection.become("connected");
        } else if (frame.type === "disconnect") {
          if (frame.reason === "link_disabled") reject(new SlackError("link_disabled"));
          else resolve();
        } else if (typeof frame.envelope_id === "string") {
          connection.seen();
          handling = handling.then(() => answer(wire, frame, handle), () => {});
          handling.catch(reject);
        }
      });
      void watch(wire, clock, () => {
        const limit = isReady ? SILENT_MS : HELLO_MS;
        return clock.monotonic() - lastAt <= limit;
      }, AbortSignal.any([signal, watching.signal])).then(() => {
        reject(new Error(`Slack was silent for ${SILENT_MS / 1000} s`));
      });
    });
    // The next one is opened first.
    void sleep(clock, LINGER_MS, signal).then(() => wire.close());
  } catch (error) {
    wire.terminate();
    throw error;
  } finally {
    watching.abort();
    signal.removeEventListener("abort", end);
  }
}

async function answer(wire: Wire, envelope: Envelope, handle: Listening["handle"]): Promise<void> {
  await handle(envelope);
  // What is gone meanwhile is sent again by Slack, and changes nothing then.
  wire.send(JSON.stringify({ envelope_id: envelope.envelope_id }));
}

/** Resolves when the connection is silent. */
async function watch(wire: Wire, clock: Clock, isAlive: () => boolean, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && isAlive()) {
    try {
      wire.ping();
    } catch {
      // It is not open yet.
    }
    await sleep(clock, PING_MS, signal);
  }
}
