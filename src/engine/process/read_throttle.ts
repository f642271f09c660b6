const WINDOW_MS = 20;
const WINDOW_BYTES = 2_000_000;
const SHARE_BYTES = 128 * 1024;
const BUFFER_BYTES = 64 * 1024;

let windowEndsAt = 0;
let windowBytes = 0;

/**
 * Reads the output of a process to its end. Above about 100 MB a second for all runs together, the runs with the most output
 * wait, and so do their programs, so that the service stays responsive (reliability CHD-6, BKP-2). A piece is valid until
 * `pass` returns, because the next one reuses its memory. Cancels the stream and rethrows when the stream or `pass` throws.
 */
export async function readThrottled(
  stream: ReadableStream<Uint8Array>,
  pass: (piece: Uint8Array) => void,
): Promise<void> {
  const reader = stream.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  let own = 0;
  let window = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      if (done) return;
      buffer = value.buffer;
      pass(value);
      const now = performance.now();
      if (now >= windowEndsAt) {
        windowEndsAt = now + WINDOW_MS;
        windowBytes = 0;
      }
      if (window !== windowEndsAt) {
        window = windowEndsAt;
        own = 0;
      }
      own += value.length;
      windowBytes += value.length;
      if (windowBytes > WINDOW_BYTES && own > SHARE_BYTES) {
        await new Promise((resolve) => setTimeout(resolve, windowEndsAt - now));
      }
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    throw error;
  }
}
