import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LogCopies } from "../../src/files/log_copy.ts";
import { createTempDir } from "../harness/service/process.ts";

const encode = (text: string) => new TextEncoder().encode(text);

describe("a log that arrives in parts", () => {
  it("returns the size of the file for a part after a gap, and does not store the part", async () => {
    await using folder = await createTempDir();
    const [path, copies] = [join(folder.path, "logs", "one.log"), new LogCopies(1_000)];
    expect(await copies.append(path, 1, encode("b"))).toBe(0);
    expect(await copies.append(path, 0, encode("abc"))).toBe(3);
    for (const gap of [1, 2, 100]) {
      expect([gap, await copies.append(path, 3 + gap, encode("xyz"))]).toEqual([gap, 3]);
      expect(await Deno.readTextFile(path)).toBe("abc");
    }
    expect(await copies.append(path, 3, encode("d"))).toBe(4);
    expect(await Deno.readTextFile(path)).toBe("abcd");
  });

  it("stores only the new bytes of a part with known ones", async () => {
    await using folder = await createTempDir();
    const [path, copies] = [join(folder.path, "one.log"), new LogCopies(1_000)];
    await copies.append(path, 0, encode("abc"));
    for (const [offset, text, next] of [[0, "abc", 3], [1, "b", 3], [2, "cd", 4], [0, "abcde", 5]] as const) {
      expect([text, await copies.append(path, offset, encode(text))]).toEqual([text, next]);
    }
    expect(await Deno.readTextFile(path)).toBe("abcde");
  });
});
