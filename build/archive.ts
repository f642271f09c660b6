import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { concatBytes } from "../src/base/bytes.ts";

export interface Entry {
  name: string;
  bytes: Uint8Array;
  executable: boolean;
}

const encoder = new TextEncoder();

/** Packs a tar.gz. Every entry has the same time and no owner, so that the same entries give the same bytes. */
export function packTarGz(entries: Entry[], at: Date): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const { name, bytes, executable } of entries) {
    parts.push(buildTarHeader(name, bytes.length, executable ? 0o755 : 0o644, at), bytes);
    parts.push(new Uint8Array((512 - bytes.length % 512) % 512));
  }
  // A tar ends with two empty blocks.
  parts.push(new Uint8Array(1024));
  return gzipSync(concatBytes(parts), { level: 9 });
}

function buildTarHeader(name: string, size: number, mode: number, at: Date): Uint8Array {
  if (encoder.encode(name).length > 99) throw new Error(`Cannot archive ${name}: the name is too long`);
  const block = new Uint8Array(512);
  const put = (offset: number, text: string) => block.set(encoder.encode(text), offset);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  put(0, name);
  put(100, `${octal(mode, 7)}\0`);
  put(108, `${octal(0, 7)}\0`);
  put(116, `${octal(0, 7)}\0`);
  put(124, `${octal(size, 11)}\0`);
  put(136, `${octal(Math.floor(at.getTime() / 1000), 11)}\0`);
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar\x0000");
  put(148, `${octal(block.reduce((sum, byte) => sum + byte, 0), 6)}\0 `);
  return block;
}

/** Packs a zip by the same rules as the tar.gz. */
export function packZip(entries: Entry[], at: Date): Uint8Array {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { name, bytes, executable } of entries) {
    const packed = deflateRawSync(bytes, { level: 9 });
    const fields = buildZipFields(name, bytes, packed.length, at);
    const local = encodeNumbers([[0x04034b50, 4], ...fields]);
    const mode = (0o100000 | (executable ? 0o755 : 0o644)) << 16 >>> 0;
    // Made on Unix, so that programs apply the file modes where they exist.
    const central = [[0x02014b50, 4], [0x0314, 2], ...fields, [0, 2], [0, 2], [0, 2], [mode, 4], [offset, 4]];
    const path = encoder.encode(name);
    parts.push(local, path, packed);
    directory.push(encodeNumbers(central), path);
    offset += local.length + path.length + packed.length;
  }
  const index = concatBytes(directory);
  const count = entries.length;
  const end = [[0x06054b50, 4], [0, 4], [count, 2], [count, 2], [index.length, 4], [offset, 4], [0, 2]];
  return concatBytes([...parts, index, encodeNumbers(end)]);
}

function buildZipFields(name: string, bytes: Uint8Array, packed: number, at: Date): number[][] {
  const time = at.getUTCHours() << 11 | at.getUTCMinutes() << 5 | at.getUTCSeconds() >> 1;
  const day = Math.max(at.getUTCFullYear() - 1980, 0) << 9 | (at.getUTCMonth() + 1) << 5 | at.getUTCDate();
  const length = encoder.encode(name).length;
  // Fields of a zip entry: version 2.0, UTF-8 names, deflated.
  return [
    [20, 2],
    [0x0800, 2],
    [8, 2],
    [time, 2],
    [day, 2],
    [crc32(bytes), 4],
    [packed, 4],
    [bytes.length, 4],
    [length, 2],
    [0, 2],
  ];
}

/** Encodes little-endian numbers of the given widths in bytes. */
function encodeNumbers(fields: number[][]): Uint8Array {
  const bytes: number[] = [];
  for (const [value = 0, width = 0] of fields) {
    for (let at = 0; at < width; at++) bytes.push(Math.floor(value / 2 ** (8 * at)) % 256);
  }
  return Uint8Array.from(bytes);
}
