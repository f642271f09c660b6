import type { Answer } from "../../api/call/answer.ts";

/**
 * A JSON answer that takes time: the headers go out at once, the body when `work` has it. A client that leaves aborts the
 * signal. The signal of the request itself cannot be used, because it also fires on success (facts, Deno 2).
 */
export function lateJson<T>(work: (signal: AbortSignal) => Promise<Answer<T>>): Response {
  const gone = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { json } = await work(gone.signal);
      controller.enqueue(new TextEncoder().encode(json));
      controller.close();
    },
    cancel: () => gone.abort(),
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "application/json", "cache-control": "no-store" } });
}
