import type { IncomingMessage } from "node:http";

/** Closes a connection in the middle of an answer on purpose: this is not an error of the server. */
export class DeliberateClose extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeliberateClose";
  }
}

// An honest client that was refused ends its body, or stops.
const LINGER_MAX_BYTES = 64 * 1024 * 1024;
const LINGER_MAX_MS = 10_000;
const LINGER_IDLE_MS = 500;

/**
 * Reads and drops what a refused client still sends. A connection that is closed earlier is reset, and the client may lose the answer
 * (reliability UPL-1). Returns true when the client has stopped, and false when it sends too much or for too long.
 */
export function discardRest(incoming: IncomingMessage): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let bytes = 0;
  let idle = setTimeout(() => resolve(true), LINGER_IDLE_MS);
  const late = setTimeout(() => resolve(false), LINGER_MAX_MS);
  // The request's own reader takes no more of it.
  incoming.removeAllListeners("data").removeAllListeners("end");
  incoming.on("data", (piece: Uint8Array) => {
    bytes += piece.length;
    if (bytes >= LINGER_MAX_BYTES) return resolve(false);
    clearTimeout(idle);
    idle = setTimeout(() => resolve(true), LINGER_IDLE_MS);
  });
  for (const event of ["end", "error", "close"]) incoming.once(event, () => resolve(true));
  incoming.resume();
  return promise.finally(() => {
    clearTimeout(idle);
    clearTimeout(late);
    incoming.pause();
  });
}
