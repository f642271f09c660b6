const WINDOW_MS = 20;
const WINDOW_BYTES = 2_000_000;
const SHARE_BYTES = 128 * 1024;

let windowEndsAt = 0;
let windowBytes = 0;

/**
 * The output of a process, slowed down so that the service has time for everybody else. Beyond about 100 MB a second for
 * all runs together, the runs with the most output wait, and so do their programs (reliability CHD-6, BKP-2).
 */
export async function* paced(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let own = 0;
  let window = 0;
  for await (const chunk of stream) {
    yield chunk;
    const now = performance.now();
    if (now >= windowEndsAt) {
      windowEndsAt = now + WINDOW_MS;
      windowBytes = 0;
    }
    if (window !== windowEndsAt) {
      window = windowEndsAt;
      own = 0;
    }
    own += chunk.length;
    windowBytes += chunk.length;
    if (windowBytes > WINDOW_BYTES && own > SHARE_BYTES) {
      await new Promise((resolve) => setTimeout(resolve, windowEndsAt - now));
    }
  }
}
