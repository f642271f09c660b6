import type { Answer } from "../../api/call/answer.ts";

/**
 * Builds a JSON response whose headers are sent immediately and whose body follows when `work` resolves. The signal aborts when the client
 * disconnects. The signal of the Request would also abort on success (facts, Deno 2).
 */
export function buildStreamedJson<T>(work: (signal: AbortSignal) => Promise<Answer<T>>): Response {
  const disconnected = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { json } = await work(disconnected.signal);
      controller.enqueue(new TextEncoder().encode(json));
      controller.close();
    },
    cancel: () => disconnected.abort(),
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "application/json", "cache-control": "no-store" } });
}
