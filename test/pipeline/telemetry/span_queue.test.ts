import { describe, expect, it } from "vitest";
import type { TraceSpan } from "../../../src/domain/system/trace.ts";
import { SpanQueue } from "../../../src/pipeline/telemetry/span_queue.ts";
import { waitUntil } from "../../harness/wait.ts";

function buildSpans(count: number): TraceSpan[] {
  return Array.from({ length: count }, (_, at) => ({
    ...{ name: `span ${at}`, kind: "internal", traceId: "1", spanId: String(at), parentId: "" },
    ...{ startedAt: 1, endedAt: 2, error: null, attributes: {} },
  }));
}

describe("SpanQueue", () => {
  it("keeps 2,048 spans for a collector that never answers, counts the others, and its stop takes 2 s at most", async () => {
    let sent = 0;
    const queue = new SpanQueue((spans) => {
      sent += spans.length;
      return new Promise(() => {});
    });
    queue.add(buildSpans(100));
    await waitUntil("a request is open", () => sent === 100);
    queue.add(buildSpans(3_000));
    queue.add(buildSpans(10));
    expect(queue.dropped).toBe(3_000 - 2_048 + 10);
    const began = performance.now();
    await queue.stop();
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(sent).toBe(100);
  });

  it("sends the spans of a failed request again, drops the oldest of too many, and sends the rest at its stop", async () => {
    let isDown = true;
    let requests = 0;
    const names: string[] = [];
    const queue = new SpanQueue((spans) => {
      requests++;
      if (isDown) {
        // More spans arrive during the request than there is space for.
        queue.add(buildSpans(2_040));
        return Promise.reject(new Error("down"));
      }
      names.push(...spans.map(({ name }) => name));
      return Promise.resolve();
    });
    queue.add(buildSpans(10));
    await waitUntil("a request fails", () => requests === 1);
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(queue.dropped).toBe(2);
    isDown = false;
    await waitUntil("the spans arrive", () => names.length > 0, 30_000);
    await queue.stop();
    expect(names).toHaveLength(2_048);
    expect(names.slice(0, 3)).toEqual(["span 2", "span 3", "span 4"]);
  });
});
