import { createLogger } from "../../base/log.ts";

const log = createLogger("http");

/** Produces the body of a response while the client reads it. */
export interface BodySource {
  /** Called when the client reads more. */
  pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void>;
  /** Releases all resources. Repeated calls have no effect. */
  close(): void;
}

/** Builds a body without a buffer. Closes the source when the client disconnects or the source throws. */
export function buildBody(source: BodySource): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        await source.pull(controller);
      } catch (error) {
        source.close();
        log.warning("Cannot complete a response: {error}", { error });
        throw error;
      }
    },
    cancel: () => source.close(),
  }, { highWaterMark: 0 });
}
