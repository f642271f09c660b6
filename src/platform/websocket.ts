/** Types of the package `ws`. The runtime's own WebSocket hides pings. */
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
  maxFragments: number;
  maxBufferedChunks: number;
  perMessageDeflate: boolean;
}

// Real messages are much smaller. Compression is off, since a few bytes could unpack to this limit.
const MESSAGE_BYTES = 16 * 1024 * 1024;
// Each fragment and each chunk costs some hundred bytes, even if it has one byte of payload. Platforms send each message in one frame.
const FRAGMENTS_MAX = 1_024;
// Enough for the largest message in packets of 1 KiB.
const BUFFERED_CHUNKS_MAX = 16 * 1024;

/** Starts to open a WebSocket, which fails after `handshakeMaxMs`. Loads the package `ws` on demand. */
export async function openWire(url: string, handshakeMaxMs: number): Promise<Wire> {
  const { WebSocket } = await import("ws") as unknown as WireModule;
  return new WebSocket(url, {
    handshakeTimeout: handshakeMaxMs,
    maxPayload: MESSAGE_BYTES,
    maxFragments: FRAGMENTS_MAX,
    maxBufferedChunks: BUFFERED_CHUNKS_MAX,
    perMessageDeflate: false,
  });
}
