const WINDOW_MS = 20;
const WINDOW_BYTES = 2_000_000;
const SHARE_BYTES = 128 * 1024;

let windowEndsAt = 0;
let windowBytes = 0;

/**
 * What a process prints, at a pace that leaves the service time for everybody else: beyond some 100 MB a second of all
 * runs together, a program that floods has to wait; one with little output does not (reliability CHD-6, BKP-2).
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
