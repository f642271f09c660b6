import { yieldToLoop } from "../../base/yield_to_loop.ts";

const PIECE_CHARS = 256 * 1024;

/** Sends a text in pieces. Megabytes in one piece would block all other requests (reliability BYT-1). */
export function buildTextStream(text: string): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      await yieldToLoop();
      if (at >= text.length) return controller.close();
      const end = findPieceEnd(text, at);
      controller.enqueue(encoder.encode(text.slice(at, end)));
      at = end;
    },
  }, { highWaterMark: 0 });
}

// Never splits a surrogate pair.
function findPieceEnd(text: string, from: number): number {
  const end = Math.min(text.length, from + PIECE_CHARS);
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code < 0xdc00 ? end - 1 : end;
}
