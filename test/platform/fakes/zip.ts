/** Reads the only file of an uncompressed zip through its directory. Throws Error for other input. */
export function unzip(bytes: Uint8Array): { name: string; text: string } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = bytes.length - 22;
  if (view.getUint32(end, true) !== 0x06054b50 || view.getUint16(end + 10, true) !== 1) {
    throw new Error("no zip");
  }
  const entry = view.getUint32(end + 16, true);
  if (view.getUint32(entry, true) !== 0x02014b50) throw new Error("no directory");
  if (entry + view.getUint32(end + 12, true) !== end) throw new Error("a directory of another size");
  const [method, size, nameSize, local] = [
    view.getUint16(entry + 10, true),
    view.getUint32(entry + 24, true),
    view.getUint16(entry + 28, true),
    view.getUint32(entry + 42, true),
  ];
  if (method !== 0 || view.getUint32(local, true) !== 0x04034b50) throw new Error("no file");
  const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const text = (from: number, length: number) =>
    new TextDecoder().decode(bytes.subarray(from, from + length));
  return { name: text(entry + 46, nameSize), text: text(begin, size) };
}
