import { createHash } from "node:crypto";
import { dirname, join } from "node:path";

/** One file of an archive: from the disk, or from memory. */
export interface ArchiveFile {
  /** Its name in the archive, with slashes. */
  name: string;
  content: { path: string } | { text: string };
}

/** The last entry of every archive: what must be in it. An archive that was cut off has none. */
const SUMS = "SHA256SUMS";

const BLOCK_BYTES = 64 * 1024;
// One step of a path that stays below the folder: not empty, not `.` or `..`, without slashes, backslashes and control characters.
const STEP = /^(?!\.{1,2}$)[^/\\\p{Cc}]+$/u;

/**
 * A tar stream of the files, which are read while the stream is read; its last entry holds their checksums. A file that
 * is deleted meanwhile is left out, of one that grows only its size at the start is taken. `finished` gets null when all
 * of the stream was read, else the error.
 */
export async function packArchive(
  files: AsyncIterable<ArchiveFile>,
  finished: (fault: Error | null) => Promise<void>,
): Promise<ReadableStream<Uint8Array>> {
  const { createTarPacker } = await import("modern-tar");
  const { readable, controller } = createTarPacker();
  const add = async (name: string, size: number, chunks: AsyncIterable<Uint8Array>) => {
    const hash = createHash("sha256");
    const writer = controller.add({ name, size, mode: 0o600 }).getWriter();
    for await (const chunk of chunks) {
      hash.update(chunk);
      await writer.write(chunk);
    }
    await writer.close();
    return `${hash.digest("hex")}  ${name}\n`;
  };
  const pack = async () => {
    let sums = "";
    for await (const file of files) sums += await addFile(file, add);
    const bytes = new TextEncoder().encode(sums);
    await add(SUMS, bytes.length, once(bytes));
    controller.finalize();
  };
  pack().then(() => finished(null), (error) => {
    controller.error(error);
    return finished(error instanceof Error ? error : new Error(String(error)));
  });
  return readable;
}

type Add = (name: string, size: number, chunks: AsyncIterable<Uint8Array>) => Promise<string>;

async function addFile({ name, content }: ArchiveFile, add: Add): Promise<string> {
  if ("text" in content) {
    const bytes = new TextEncoder().encode(content.text);
    return await add(name, bytes.length, once(bytes));
  }
  const file = await Deno.open(content.path, { read: true }).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (file === null) return "";
  try {
    const { size } = await file.stat();
    return await add(name, size, blocks(file, size, name));
  } finally {
    file.close();
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

/** The first `size` bytes of a file. */
async function* blocks(file: Deno.FsFile, size: number, name: string): AsyncGenerator<Uint8Array> {
  for (let left = size; left > 0;) {
    const block = new Uint8Array(Math.min(BLOCK_BYTES, left));
    const read = await file.read(block);
    if (read === null) throw new Error(`${name} became shorter while it was read`);
    left -= read;
    yield block.subarray(0, read);
  }
}

/** Every file below a folder, as `<prefix>/<path>`; nothing when there is no such folder. Links and devices are left out. */
export async function* filesBelow(folder: string, prefix: string): AsyncGenerator<ArchiveFile> {
  let entries: Deno.DirEntry[];
  try {
    entries = await Array.fromAsync(Deno.readDir(folder));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  for (const entry of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
    const path = join(folder, entry.name);
    const name = `${prefix}/${entry.name}`;
    if (entry.isDirectory) yield* filesBelow(path, name);
    else if (entry.isFile) yield { name, content: { path } };
  }
}

/** What is wrong with an archive, as a message for the operator. */
export class ArchiveError extends Error {
  constructor(words: string) {
    super(words);
    this.name = "ArchiveError";
  }
}

/**
 * Unpacks an archive below `folder`, every file with mode 0600 and on the disk, and compares all checksums. Returns the
 * names. Throws ArchiveError when it is no archive of ours, cut off, changed, or names a place outside.
 */
export async function unpackArchive(archive: ReadableStream<Uint8Array>, folder: string): Promise<string[]> {
  const { createTarDecoder } = await import("modern-tar");
  const found = new Map<string, string>();
  let sums: string | null = null;
  const entries = archive.pipeThrough(createTarDecoder({ strict: true }) as TransformPair);
  try {
    for await (const { header, body } of entries) {
      const { name, type = "file" } = header;
      if (
        type !== "file" || !name.split("/").every((step) => STEP.test(step)) || sums !== null ||
        found.has(name)
      ) {
        throw new ArchiveError(`it holds ${JSON.stringify(name.slice(0, 200))}, which no backup does`);
      }
      if (name === SUMS) sums = await new Response(body).text();
      else found.set(name, await store(body, join(folder, name)));
    }
  } catch (error) {
    if (error instanceof ArchiveError || error instanceof Deno.errors.PermissionDenied) throw error;
    const words = error instanceof Error ? error.message : String(error);
    throw new ArchiveError(
      /tar|checksum|header|USTAR/i.test(words) ? `it is damaged or no tar archive: ${words}` : words,
    );
  }
  if (sums === null) throw new ArchiveError("it is cut off: its last entry, the checksums, is missing");
  const expected = new Map(
    sums.split("\n").filter((line) => line !== "").map((line) =>
      [line.slice(66), line.slice(0, 64)] as const
    ),
  );
  for (const name of new Set([...expected.keys(), ...found.keys()])) {
    if (expected.get(name) !== found.get(name)) throw new ArchiveError(`${name} is not what was packed`);
  }
  return [...found.keys()];
}

interface TransformPair {
  readable: ReadableStream<{ header: { name: string; type?: string }; body: ReadableStream<Uint8Array> }>;
  writable: WritableStream<Uint8Array>;
}

async function store(body: ReadableStream<Uint8Array>, path: string): Promise<string> {
  await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const hash = createHash("sha256");
  const file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  try {
    for await (const chunk of body) {
      hash.update(chunk);
      for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
    }
    await file.sync();
  } finally {
    file.close();
  }
  return hash.digest("hex");
}
