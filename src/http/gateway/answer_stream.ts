import type { IncomingMessage } from "node:http";
import { DeliberateClose } from "../server/exchange.ts";
import { GATEWAY_SILENCE_MAX_MS } from "./upstream.ts";

/** The largest answer that passes through a gateway. */
const GATEWAY_ANSWER_MAX_BYTES = 1024 * 1024 * 1024;

/** Looks at an answer on its way. */
export interface AnswerWatcher {
  /** Returns the bytes to pass on instead of this piece. */
  take(piece: Uint8Array): Promise<Uint8Array> | Uint8Array;
  /** Called once, at the end or where the answer is cut off. Returns the bytes that are left. */
  end(): Promise<Uint8Array>;
}

interface AnswerOptions {
  watcher: AnswerWatcher;
  /** Ends the answer, because its run has ended. */
  signal: AbortSignal;
  /** Called when the answer has ended and the watcher has counted it. */
  onEnd: () => void;
}

/** Streams an answer of an upstream. Reads only what the client takes. An answer that is cut off cuts the client's connection. */
export function openAnswer(message: IncomingMessage, options: AnswerOptions): ReadableStream<Uint8Array> {
  const cancelled = new AbortController();
  const pieces = readAnswer(message, {
    ...options,
    signal: AbortSignal.any([options.signal, cancelled.signal]),
  });
  const { signal } = options;
  let cut = () => {};
  return new ReadableStream({
    start(controller) {
      cut = () => {
        controller.error(new DeliberateClose("the run has ended"));
        // A client that does not read would keep the answer open.
        void pieces.return(undefined).catch(() => {});
      };
      signal.addEventListener("abort", cut, { once: true });
    },
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (signal.aborted) return;
      if (!done) return controller.enqueue(value);
      signal.removeEventListener("abort", cut);
      controller.close();
    },
    async cancel() {
      cancelled.abort();
      await pieces.return(undefined);
    },
  }, { highWaterMark: 0 });
}

async function* readAnswer(
  message: IncomingMessage,
  { watcher, signal, onEnd }: AnswerOptions,
): AsyncGenerator<Uint8Array, undefined> {
  let isWhole = false;
  try {
    let bytes = 0;
    const source = message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    for (;;) {
      const { done, value } = await readNext(source, signal);
      if (done) break;
      bytes += value.length;
      if (bytes > GATEWAY_ANSWER_MAX_BYTES) throw new DeliberateClose("the answer is too large");
      const passed = await watcher.take(value);
      if (passed.length > 0) yield passed;
    }
    isWhole = true;
    const rest = await watcher.end();
    if (rest.length > 0) yield rest;
  } catch (error) {
    throw error instanceof DeliberateClose ? error : new DeliberateClose(String(error));
  } finally {
    if (!isWhole) {
      message.destroy();
      await watcher.end();
    }
    onEnd();
  }
}

async function readNext(
  source: AsyncIterator<Uint8Array>,
  signal: AbortSignal,
): Promise<IteratorResult<Uint8Array>> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new DeliberateClose("the run or the client has ended"));
  const timer = setTimeout(
    () => reject(new DeliberateClose("the upstream is silent")),
    GATEWAY_SILENCE_MAX_MS,
  );
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const next = source.next();
    next.catch(() => {});
    return await Promise.race([next, ended]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
