/**
 * A JSON answer that takes its time: the headers go out at once, the body when `work` has it. A client that leaves
 * aborts the signal; the request's own signal also fires on success and says nothing (facts, Deno 2).
 */
export function lateJson(work: (signal: AbortSignal) => Promise<string>): Response {
  const gone = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode(await work(gone.signal)));
      controller.close();
    },
    cancel: () => gone.abort(),
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "application/json", "cache-control": "no-store" } });
}
