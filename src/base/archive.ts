import { createHash } from "node:crypto";
import { dirname, join } from "node:path";

export interface ArchiveFile {
  /** Name in the archive, with slashes. */
  name: string;
  content: { path: string } | { text: string };
}

/** The last entry of every archive: the checksums. A truncated archive has none. */
const SUMS = "SHA256SUMS";

const BLOCK_BYTES = 64 * 1024;
// A path segment that stays below the folder: not empty, not `.` or `..`, no slashes, backslashes or control characters.
const STEP = /^(?!\.{1,2}$)[^/\\\p{Cc}]+$/u;

/**
 * Packs the files into a tar stream and reads them while the caller reads the stream. The last entry holds the checksums.
 * Skips a file that is deleted meanwhile; takes only the initial size of a file that grows. Calls `finished` with null after
 * the whole stream was read, else with the error.
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
    await add(SUMS, bytes.length, yieldOnce(bytes));
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
    return await add(name, bytes.length, yieldOnce(bytes));
  }
  const file = await Deno.open(content.path, { read: true }).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (file === null) return "";
  try {
    const { size } = await file.stat();
    return await add(name, size, readBlocks(file, size, name));
  } finally {
    file.close();
  }
}

async function* yieldOnce(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

async function* readBlocks(file: Deno.FsFile, size: number, name: string): AsyncGenerator<Uint8Array> {
  for (let left = size; left > 0;) {
    const block = new Uint8Array(Math.min(BLOCK_BYTES, left));
    const read = await file.read(block);
    if (read === null) throw new Error(`${name} became shorter while it was read`);
    left -= read;
    yield block.subarray(0, read);
  }
}

/**
 * Yields every file below a folder as `<prefix>/<path>`, or nothing when the folder does not exist. Skips links and devices.
 */
export async function* listFilesBelow(folder: string, prefix: string): AsyncGenerator<ArchiveFile> {
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
    if (entry.isDirectory) yield* listFilesBelow(path, name);
    else if (entry.isFile) yield { name, content: { path } };
  }
}

/** An archive cannot be unpacked. The message is for the operator. */
export class ArchiveError extends Error {
  constructor(words: string) {
    super(words);
    this.name = "ArchiveError";
  }
}

/**
 * Unpacks an archive below `folder` and compares all checksums. Each file has mode 0600 and is synced to disk. Returns the
 * names. Throws ArchiveError for a foreign, truncated or changed archive and for a path outside of the folder.
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
        throw new ArchiveError(`it holds ${JSON.stringify(name.slice(0, 200))}, which no backup contains`);
      }
      if (name === SUMS) sums = await new Response(body).text();
      else found.set(name, await store(body, join(folder, name)));
    }
  } catch (error) {
    if (error instanceof ArchiveError || error instanceof Deno.errors.PermissionDenied) throw error;
    const words = error instanceof Error ? error.message : String(error);
    throw new ArchiveError(
      /tar|checksum|header|USTAR/i.test(words) ? `it is damaged or not a tar archive: ${words}` : words,
    );
  }
  if (sums === null) throw new ArchiveError("it is truncated: its last entry, the checksums, is missing");
  const expected = new Map(
    sums.split("\n").filter((line) => line !== "").map((line) =>
      [line.slice(66), line.slice(0, 64)] as const
    ),
  );
  for (const name of new Set([...expected.keys(), ...found.keys()])) {
    if (expected.get(name) !== found.get(name)) throw new ArchiveError(`${name} does not match its checksum`);
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
