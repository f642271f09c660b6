import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { LineSplitter } from "../../src/engine/process/line_splitter.ts";

function split(chunks: Uint8Array[], maxBytes: number) {
  const lines: string[] = [];
  const long: [string, number][] = [];
  const splitter = new LineSplitter(
    maxBytes,
    (line) => lines.push(line),
    (head, bytes) => long.push([head, bytes]),
  );
  for (const chunk of chunks) splitter.add(chunk);
  splitter.end();
  return { lines, long };
}

const bytes = (text: string) => new TextEncoder().encode(text);

describe("LineSplitter", () => {
  it("returns the same lines for every split of the stream", () => {
    const text = "one\ntwo ü€\r\n\nlast";
    fc.assert(fc.property(fc.array(fc.nat(bytes(text).length), { maxLength: 8 }), (cuts) => {
      const all = bytes(text);
      const at = [0, ...cuts.sort((a, b) => a - b), all.length];
      const chunks = at.slice(1).map((end, index) => all.subarray(at[index], end));
      expect(split(chunks, 100).lines).toEqual(["one", "two ü€", "", "last"]);
    }));
  });

  it("keeps no object for each piece, when a line arrives byte by byte", () => {
    const copies = vi.spyOn(Object.getPrototypeOf(Uint8Array.prototype), "slice");
    try {
      const pieces = Array.from({ length: 10_000 }, () => bytes("x"));
      expect(split(pieces, 20_000).lines).toEqual(["x".repeat(10_000)]);
      expect(split(pieces, 5_000).long).toEqual([["x".repeat(200), 10_000]]);
      expect(copies.mock.calls.length).toBeLessThan(100);
    } finally {
      copies.mockRestore();
    }
  });

  it("accepts a line at its limit, reports a longer line, and continues", () => {
    expect(split([bytes("12345\n123456\nok\n")], 5)).toEqual({
      lines: ["12345", "ok"],
      long: [["123456", 6]],
    });
    expect(split([bytes("123"), bytes("456"), bytes("789\nok")], 5)).toEqual({
      lines: ["ok"],
      long: [["123", 9]],
    });
  });
});
