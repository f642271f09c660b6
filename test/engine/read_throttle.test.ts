import { describe, expect, it } from "vitest";
import { readThrottled } from "../../src/engine/process/read_throttle.ts";

/** A stream of chunks that are available immediately. */
function stream(chunks: number, bytes: number): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (sent++ < chunks) return controller.enqueue(new Uint8Array(bytes));
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
}

async function read(from: ReadableStream<Uint8Array>): Promise<{ bytes: number; at: number }> {
  let bytes = 0;
  await readThrottled(from, (piece) => void (bytes += piece.length));
  return { bytes, at: performance.now() };
}

describe("readThrottled() [CHD-6]", () => {
  it("yields to other work while programs flood, loses nothing, and does not delay quiet programs", async () => {
    const started = performance.now();
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const floods = Promise.all(Array.from({ length: 4 }, () => read(stream(200, 65_536))));
    const quiet = await read(stream(50, 100));
    const done = await floods;
    clearInterval(timer);
    expect(quiet.bytes).toBe(5_000);
    expect(done.map(({ bytes }) => bytes)).toEqual(Array(4).fill(200 * 65_536));
    for (const flood of done) expect(quiet.at).toBeLessThan(flood.at);
    // Reads 52 MB at 2 MB in 20 ms, and each reader gets its share.
    expect(performance.now() - started).toBeGreaterThan(200);
    expect(turns).toBeGreaterThan(50);
  });

  it("rethrows the error of its stream, and closes the stream when its reader fails", async () => {
    const broken = new ReadableStream({
      type: "bytes",
      pull: (controller) => controller.error(new Error("broken")),
    });
    await expect(read(broken)).rejects.toThrow("broken");
    let cancelled = false;
    const endless = new ReadableStream({
      type: "bytes",
      pull: (controller) => controller.enqueue(new Uint8Array(10)),
      cancel: () => void (cancelled = true),
    });
    const refuse = () => {
      throw new Error("enough");
    };
    await expect(readThrottled(endless, refuse)).rejects.toThrow("enough");
    expect(cancelled).toBe(true);
  });
});
