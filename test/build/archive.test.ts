import { join } from "node:path";
import { crc32, inflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Entry, packTarGz, packZip } from "../../build/archive.ts";
import { createTempDir } from "../harness/service/process.ts";

const AT = new Date("2026-01-02T03:04:06Z");
const text = (words: string) => new TextEncoder().encode(words);
const ENTRIES: Entry[] = [
  { name: "svc-1/svc", bytes: text("x".repeat(1000)), executable: true },
  { name: "svc-1/empty", bytes: text(""), executable: false },
  { name: "svc-1/block", bytes: text("y".repeat(512)), executable: false },
];

describe("packTarGz()", () => {
  it("packs names, modes, times and contents for tar", async () => {
    await using folder = await createTempDir();
    await Deno.writeFile(join(folder.path, "a.tar.gz"), packTarGz(ENTRIES, AT));
    const { success } = await new Deno.Command("tar", { args: ["-xzf", "a.tar.gz"], cwd: folder.path })
      .output();
    expect(success).toBe(true);
    for (const { name, bytes, executable } of ENTRIES) {
      const path = join(folder.path, name);
      expect(await Deno.readFile(path)).toEqual(bytes);
      const { mode, mtime } = await Deno.stat(path);
      expect([(mode ?? 0) & 0o111, mtime]).toEqual([executable ? 0o111 : 0, AT]);
    }
  });

  it("gives the same bytes for the same entries, and refuses a name that is too long", () => {
    expect(packTarGz(ENTRIES, AT)).toEqual(packTarGz(ENTRIES, AT));
    expect(() => packTarGz([{ name: "n".repeat(100), bytes: text(""), executable: false }], AT)).toThrow(
      /too long/,
    );
  });
});

describe("zip", () => {
  it("has each entry after its header, and a directory that points to it (APPNOTE 4.3)", () => {
    const bytes = packZip(ENTRIES, AT);
    const view = new DataView(bytes.buffer);
    const end = bytes.length - 22;
    expect(view.getUint32(end, true)).toBe(0x06054b50);
    expect(view.getUint16(end + 10, true)).toBe(ENTRIES.length);
    let at = view.getUint32(end + 16, true);
    for (const { name, bytes: content, executable } of ENTRIES) {
      expect(view.getUint32(at, true)).toBe(0x02014b50);
      expect(view.getUint32(at + 38, true) >>> 16 & 0o777).toBe(executable ? 0o755 : 0o644);
      const local = view.getUint32(at + 42, true);
      const [packed, length] = [view.getUint32(local + 18, true), view.getUint16(local + 26, true)];
      expect(view.getUint32(local, true)).toBe(0x04034b50);
      expect(view.getUint32(local + 14, true)).toBe(crc32(content));
      expect(new TextDecoder().decode(bytes.subarray(local + 30, local + 30 + length))).toBe(name);
      const data = bytes.subarray(local + 30 + length, local + 30 + length + packed);
      expect(new Uint8Array(inflateRawSync(data))).toEqual(content);
      at += 46 + length;
    }
    expect(at).toBe(end);
  });
});
