/** What we use of the package `ws`: the runtime's own WebSocket shows no pings (decision 0023). */
export interface Wire {
  on(name: "message", call: (data: { toString(): string }, isBinary: boolean) => void): void;
  on(name: "open" | "ping" | "pong", call: () => void): void;
  on(name: "close", call: (code: number, reason: { toString(): string }) => void): void;
  on(name: "error", call: (error: Error) => void): void;
  send(data: string | Uint8Array): void;
  ping(): void;
  close(code?: number): void;
  terminate(): void;
}

interface WireModule {
  WebSocket: new (url: string, options: Options) => Wire;
}

interface Options {
  handshakeTimeout: number;
  maxPayload: number;
  perMessageDeflate: boolean;
}

// Many times what a platform sends at once. It is not compressed: a few bytes could become all of it.
const MESSAGE_BYTES = 16 * 1024 * 1024;

/** A WebSocket to a platform, not open yet; it fails when it is not open in time. The package is loaded with the first one. */
export async function openWire(url: string, handshakeMaxMs: number): Promise<Wire> {
  const { WebSocket } = await import("ws") as unknown as WireModule;
  return new WebSocket(url, {
    handshakeTimeout: handshakeMaxMs,
    maxPayload: MESSAGE_BYTES,
    perMessageDeflate: false,
  });
}
