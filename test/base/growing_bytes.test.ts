import { describe, expect, it } from "vitest";
import { GrowingBytes } from "../../src/base/bytes.ts";

describe("GrowingBytes", () => {
  it("grows a few times only, when bytes arrive one by one", () => {
    const bytes = new GrowingBytes();
    const buffers = new Set<ArrayBufferLike>();
    for (let at = 0; at < 100_000; at++) {
      bytes.append(Uint8Array.of(at % 251));
      buffers.add(bytes.view().buffer);
    }
    expect(buffers.size).toBeLessThan(20);
    expect(bytes.view()).toEqual(Uint8Array.from({ length: 100_000 }, (_, at) => at % 251));
  });

  it("keeps its bytes, when the caller reuses the piece", () => {
    const piece = Uint8Array.of(1);
    const bytes = new GrowingBytes();
    bytes.append(piece);
    piece[0] = 2;
    bytes.append(new Uint8Array());
    expect([...bytes.view()]).toEqual([1]);
  });
});
