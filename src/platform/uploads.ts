import { basename, join } from "node:path";
import { ServiceError } from "../domain/error.ts";
import { faultPoint } from "../fault.ts";
import type { Media } from "../domain/message.ts";

/** Most files of one conversation (promises UPL-2). */
export const UPLOADS_PER_SESSION_MAX = 1_000;

const SNIFF_BYTES = 4_100;
const PARTIAL = ".part";

/** A file on its way in: written under a temporary name, and only finish() gives it its own. */
export class IncomingFile {
  size = 0;
  readonly #file: Deno.FsFile;
  readonly #partial: string;
  readonly #folder: string;
  readonly #name: string;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  #open = true;

  private constructor(file: Deno.FsFile, folder: string, name: string, partial: string) {
    this.#file = file;
    this.#folder = folder;
    this.#name = name;
    this.#partial = partial;
  }

  /** Opens a new file in `folder`, which is made when missing. Throws `storage_full`. */
  static async open(folder: string, id: string, originalName: string): Promise<IncomingFile> {
    return await mapped(async () => {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const name = safeName(id, originalName);
      const partial = join(folder, `.${id}${PARTIAL}`);
      const file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
      return new IncomingFile(file, folder, name, partial);
    });
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.#headBytes < SNIFF_BYTES) {
      const part = chunk.slice(0, SNIFF_BYTES - this.#headBytes);
      this.#head.push(part);
      this.#headBytes += part.length;
    }
    await mapped(async () => {
      for (let at = 0; at < chunk.length;) at += await this.#file.write(chunk.subarray(at));
    });
    this.size += chunk.length;
    faultPoint("upload.part");
  }

  /** On disk, under its name in `folder`, and described. */
  async finish(folder: string = this.#folder): Promise<Media> {
    await mapped(() => this.#file.sync());
    this.#close();
    await mapped(() => Deno.mkdir(folder, { recursive: true, mode: 0o700 }));
    const path = join(folder, this.#name);
    await mapped(() => Deno.rename(this.#partial, path));
    const head = new Uint8Array(await new Blob(this.#head as BlobPart[]).arrayBuffer());
    return { path, name: this.#name, size: this.size, mime: await sniff(head) };
  }

  /** Leaves nothing behind. */
  async discard(): Promise<void> {
    this.#close();
    await Deno.remove(this.#partial).catch(() => {});
  }

  #close(): void {
    if (this.#open) this.#file.close();
    this.#open = false;
  }
}

async function mapped<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (!/ENOSPC|EDQUOT|No space|os error (28|122)\b/i.test(reason)) throw error;
    throw new ServiceError("storage_full", "Cannot store the file: the disk is full", { cause: error });
  }
}

// The id in front makes it unique and keeps device names and leading dots away; the rest is for people.
function safeName(id: string, originalName: string): string {
  const last = originalName.split(/[/\\]/).at(-1) ?? "";
  const slug = last.normalize("NFKD").replace(/\p{M}/gu, "").replace(/[^A-Za-z0-9._-]+/g, "_").replace(
    /\.{2,}/g,
    ".",
  ).slice(-80);
  return slug.replace(/^[._-]+/, "") === "" ? id : `${id}-${slug.replace(/^[._-]+/, "")}`;
}

/** What the first bytes of a file say that it is. */
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

/**
 * The real path of a file that lies in `folder`, or null: it has to exist, be a plain file with one name, and
 * stay inside when every symbolic link is followed (interface 8, promises PTH-1).
 */
export async function fileInside(folder: string, path: string): Promise<Media | null> {
  if (path.includes("\0")) return null;
  try {
    const root = await Deno.realPath(folder);
    const real = await Deno.realPath(path);
    const info = await Deno.lstat(real);
    const inside = real.startsWith(`${root}/`) || real.startsWith(`${root}\\`);
    if (!inside || !info.isFile || (info.nlink ?? 1) > 1 || basename(real).endsWith(PARTIAL)) return null;
    const file = await Deno.open(real, { read: true });
    const head = new Uint8Array(SNIFF_BYTES);
    const read = await file.read(head).finally(() => file.close());
    return {
      path: real,
      name: basename(real),
      size: info.size,
      mime: await sniff(head.subarray(0, read ?? 0)),
    };
  } catch {
    return null;
  }
}

/** Removes what uploads left behind that a crash cut off. Answers how many (promises UPL-5). */
export async function removePartials(uploads: string): Promise<number> {
  let removed = 0;
  try {
    for await (const folder of Deno.readDir(uploads)) {
      if (!folder.isDirectory) continue;
      for await (const file of Deno.readDir(join(uploads, folder.name))) {
        if (!file.name.endsWith(PARTIAL)) continue;
        await Deno.remove(join(uploads, folder.name, file.name)).catch(() => {});
        removed++;
      }
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return removed;
}
