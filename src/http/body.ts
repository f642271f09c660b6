import { logger } from "../base/log.ts";

const log = logger("http");

/** What makes a body while it is read. */
export interface BodySource {
  /** Called when the client takes more. */
  pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void>;
  /** Lets go of everything; may be called again. */
  close(): void;
}

/** A body without a buffer that could overflow. Its source is closed when the client leaves, and when it fails. */
export function bodyFrom(source: BodySource): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        await source.pull(controller);
      } catch (error) {
        source.close();
        log.warning("An answer was broken off: {error}", { error });
        throw error;
      }
    },
    cancel: () => source.close(),
  }, { highWaterMark: 0 });
}
