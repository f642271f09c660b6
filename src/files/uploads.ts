import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { ServiceError } from "../domain/call/error.ts";
import { faultPoint } from "../base/fault_point.ts";
import type { Media } from "../domain/chat/message.ts";
import { DiskReservation } from "./disk_space.ts";
import { buildStoredName, cleanFileName } from "./file_name.ts";

/** Limit of the number of files per conversation. The limit of their total size is this many files of the largest size. */
export const UPLOADS_PER_SESSION_MAX = 1_000;
export const UPLOADS_PER_SESSION_MAX_LARGEST = 20;

/** Returns a conversation's quota for a maximum file size. */
export function buildUploadQuota(maxUploadBytes: number): { files: number; bytes: number } {
  return { files: UPLOADS_PER_SESSION_MAX, bytes: UPLOADS_PER_SESSION_MAX_LARGEST * maxUploadBytes };
}

const SNIFF_BYTES = 4_100;
const PARTIAL = ".part";

/** Whether a file is an unfinished upload. Names of stored files never start with a dot. */
export function isPartial(name: string): boolean {
  return name.startsWith(".") && name.endsWith(PARTIAL);
}

/** A file during its upload. It has a temporary name until finish(). */
export class IncomingFile {
  size = 0;
  readonly #file: Deno.FsFile;
  readonly #partial: string;
  readonly #folder: string;
  readonly #name: string;
  /** The name that people and agents see. */
  readonly originalName: string;
  readonly #space: DiskReservation;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  #open = true;

  private constructor(
    file: Deno.FsFile,
    location: { folder: string; partial: string; name: string; originalName: string },
    space: DiskReservation,
  ) {
    this.#file = file;
    this.#folder = location.folder;
    this.#name = location.name;
    this.originalName = location.originalName;
    this.#partial = location.partial;
    this.#space = space;
  }

  /** Opens a file in `folder`, which is created if missing, and reserves `bytes`. Throws `storage_full`. */
  static async open(folder: string, id: string, originalName: string, bytes = 0): Promise<IncomingFile> {
    return await mapDiskErrors(async () => {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const space = new DiskReservation(folder, bytes);
      const partial = join(folder, `.${id}${PARTIAL}`);
      try {
        const file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
        const names = { name: buildStoredName(id, originalName), originalName: cleanFileName(originalName) };
        return new IncomingFile(file, { folder, partial, ...names }, space);
      } catch (error) {
        space.release();
        throw error;
      }
    });
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.#headBytes < SNIFF_BYTES) {
      const part = chunk.slice(0, SNIFF_BYTES - this.#headBytes);
      this.#head.push(part);
      this.#headBytes += part.length;
    }
    this.#space.reserve(chunk.length);
    await mapDiskErrors(async () => {
      for (let at = 0; at < chunk.length;) at += await this.#file.write(chunk.subarray(at));
    });
    this.#space.releaseWritten(chunk.length);
    this.size += chunk.length;
    faultPoint("upload.part");
  }

  /** Hashes the bytes so far: SHA-256 in hex. */
  async digest(): Promise<string> {
    const hash = createHash("sha256");
    const file = await Deno.open(this.#partial, { read: true });
    for await (const chunk of file.readable) hash.update(chunk);
    return hash.digest("hex");
  }

  /** Syncs the file to disk and moves it to its name in `folder`. Throws `storage_full`. */
  async finish(folder: string = this.#folder): Promise<Media> {
    await mapDiskErrors(() => this.#file.sync());
    this.#close();
    await mapDiskErrors(() => Deno.mkdir(folder, { recursive: true, mode: 0o700 }));
    const path = join(folder, this.#name);
    await mapDiskErrors(() => Deno.rename(this.#partial, path));
    const head = new Uint8Array(await new Blob(this.#head as BlobPart[]).arrayBuffer());
    const names = { name: this.#name, original_name: this.originalName };
    return { path, ...names, size: this.size, mime: await sniff(head) };
  }

  get finished(): boolean {
    return !this.#open;
  }

  async discard(): Promise<void> {
    this.#close();
    await Deno.remove(this.#partial).catch(() => {});
  }

  #close(): void {
    this.#space.release();
    if (this.#open) this.#file.close();
    this.#open = false;
  }
}

async function mapDiskErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (!/ENOSPC|EDQUOT|No space|os error (28|122)\b/i.test(reason)) throw error;
    throw new ServiceError("storage_full", "Cannot store the file: the disk is full", { cause: error });
  }
}

/** Detects a media type from the first bytes. */
async function sniff(head: Uint8Array): Promise<string> {
  const { fileTypeFromBuffer } = await import("file-type");
  const found = await fileTypeFromBuffer(head);
  if (found !== undefined) return found.mime;
  if (head.length === 0 || head.includes(0)) return "application/octet-stream";
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return "text/plain";
  } catch {
    return "application/octet-stream";
  }
}

/** An open file that was checked to be in its folder. The caller closes it. */
interface OpenFile {
  file: Deno.FsFile;
  path: string;
  size: number;
}

/**
 * Opens a file in `folder`. Returns null unless it exists, is a plain file with one name, and is inside after following
 * all symbolic links. The open file is the checked one even when another replaces it meanwhile (reliability PTH-2).
 */
export async function openInside(folder: string, path: string): Promise<OpenFile | null> {
  // Checks the file before opening it as well, because opening a pipe would block, and opening a device can have effects.
  const before = await findInside(folder, path);
  if (before === null) return null;
  const file = await Deno.open(before.path, { read: true }).catch(() => null);
  if (file === null) return null;
  try {
    const [open, after] = [await file.stat(), await findInside(folder, path)];
    const same = after !== null && open.dev === after.dev && open.ino === after.ino;
    if (same) return { file, path: after.path, size: open.size };
  } catch {
    // The file was removed meanwhile.
  }
  file.close();
  return null;
}

async function findInside(
  folder: string,
  path: string,
): Promise<{ path: string; dev: number; ino: number | null } | null> {
  try {
    const root = await Deno.realPath(folder);
    const real = await Deno.realPath(path);
    const info = await Deno.lstat(real);
    const inside = real.startsWith(`${root}/`) || real.startsWith(`${root}\\`);
    if (!inside || !info.isFile || (info.nlink ?? 1) > 1 || isPartial(basename(real))) return null;
    return { path: real, dev: info.dev, ino: info.ino };
  } catch {
    return null;
  }
}

/** Describes a file in `folder`, or returns null; see openInside(). */
export async function describeFileInside(folder: string, path: string): Promise<Media | null> {
  const found = await openInside(folder, path);
  if (found === null) return null;
  try {
    const head = new Uint8Array(SNIFF_BYTES);
    const read = await found.file.read(head);
    const mime = await sniff(head.subarray(0, read ?? 0));
    const name = basename(found.path);
    return { path: found.path, name, original_name: cleanFileName(name), size: found.size, mime };
  } finally {
    found.file.close();
  }
}

/** Removes the partial uploads of a crash and returns their number. */
export async function removePartials(uploads: string): Promise<number> {
  let removed = 0;
  try {
    for await (const folder of Deno.readDir(uploads)) {
      if (!folder.isDirectory) continue;
      for await (const file of Deno.readDir(join(uploads, folder.name))) {
        if (!isPartial(file.name)) continue;
        await Deno.remove(join(uploads, folder.name, file.name)).catch(() => {});
        removed++;
      }
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return removed;
}
