import { logger } from "../../base/log.ts";

const log = logger("http");

/** The source of a body that is made while it is read. */
export interface BodySource {
  /** Called when the client reads more. */
  pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void>;
  /** Releases everything; may be called again. */
  close(): void;
}

/** A body without a buffer. Its source is closed when the client leaves and when the source throws. */
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
