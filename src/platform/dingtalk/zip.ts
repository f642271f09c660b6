import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import type { PartFile } from "../part_file.ts";

/** Types that a robot may send. Other files go into a zip. */
const TYPES = ["xlsx", "pdf", "zip", "rar", "doc", "docx"];
const UTF8 = 0x0800;
const VERSION = 20;
// 1980-01-01, the first day of the format.
const DATE = 0x0021;

/** Packs a file into a zip unless DingTalk takes its type. */
export function packForSending(file: PartFile): { file: PartFile; type: string } {
  const type = /\.(\w+)$/.exec(file.name)?.[1]?.toLowerCase() ?? "";
  if (TYPES.includes(type)) return { file, type };
  return { file: { name: `${file.name}.zip`, bytes: buildZip(file), mime: "application/zip" }, type: "zip" };
}

/** Builds a zip of one file, without compression, which would take time. */
function buildZip({ name, bytes }: PartFile): Uint8Array<ArrayBuffer> {
  const title = Buffer.from(name.replace(/[\\/]/g, "_"));
  const about = Buffer.alloc(26);
  [VERSION, UTF8, 0, 0, DATE].forEach((value, at) => about.writeUInt16LE(value, at * 2));
  [crc32(bytes), bytes.length, bytes.length].forEach((value, at) => about.writeUInt32LE(value, 10 + at * 4));
  about.writeUInt16LE(title.length, 22);
  const local = Buffer.concat([buildSignature(3, 4), about, title]);
  // The 14 zeros: no comment, disk or attributes, and the file starts at 0.
  const entry = Buffer.concat([
    buildSignature(1, 2),
    Buffer.from([VERSION, 0]),
    about,
    Buffer.alloc(14),
    title,
  ]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(entry.length, 8);
  end.writeUInt32LE(local.length + bytes.length, 12);
  return new Uint8Array(Buffer.concat([local, bytes, entry, buildSignature(5, 6), end]));
}

function buildSignature(first: number, second: number): Uint8Array {
  return new Uint8Array([0x50, 0x4b, first, second]);
}
