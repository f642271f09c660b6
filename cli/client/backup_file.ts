import { basename, dirname, join } from "node:path";
import { ServiceError } from "../../src/domain/call/error.ts";
import { EXIT, Exit, formatReason } from "../terminal/exit.ts";

// A tar archive consists of whole blocks and ends with two empty ones.
const TAR_BLOCK_BYTES = 512;
const TAR_END_BYTES = 1024;

/** Returns whether a path exists. A broken link counts, too. */
export async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

export function refuseExisting(path: string): Exit {
  return new Exit(EXIT.conflict, `Cannot write ${path}: the file exists. Use another name or --force.`);
}

/**
 * Writes an archive to a file that only its owner can read. The file gets its name only when it is complete and on
 * disk; a failed transfer leaves nothing (reliability BAK-3). Returns the number of bytes.
 */
export async function saveBackup(response: Response, path: string, replace: boolean): Promise<number> {
  const partial = join(dirname(path), `.${basename(path)}.${crypto.randomUUID().slice(0, 8)}.part`);
  const file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 }).catch((error) => {
    void response.body?.cancel();
    throw explainFileError(path, error);
  });
  try {
    const bytes = await copyBody(response, file, path);
    file.close();
    await moveIntoPlace(partial, path, replace);
    return bytes;
  } catch (error) {
    try {
      file.close();
    } catch {
      // The file was closed before its rename.
    }
    await Deno.remove(partial).catch(() => {});
    throw error;
  }
}

async function copyBody(response: Response, file: Deno.FsFile, path: string): Promise<number> {
  let bytes = 0;
  let zeros = 0;
  try {
    for await (const chunk of response.body ?? []) {
      await writeChunk(file, chunk, path);
      bytes += chunk.length;
      const last = chunk.findLastIndex((byte) => byte !== 0);
      zeros = last === -1 ? zeros + chunk.length : chunk.length - 1 - last;
    }
  } catch (error) {
    if (error instanceof Exit) throw error;
    throw new ServiceError(
      "unavailable",
      "Cannot finish the backup: the service ended the transfer. See its log.",
      {
        cause: error,
      },
    );
  }
  if (zeros < TAR_END_BYTES || bytes % TAR_BLOCK_BYTES !== 0) {
    throw new ServiceError("unavailable", "Cannot finish the backup: the transfer is incomplete. Try again.");
  }
  await file.sync();
  return bytes;
}

async function writeChunk(file: Deno.FsFile, chunk: Uint8Array, path: string): Promise<void> {
  try {
    for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
  } catch (error) {
    throw explainFileError(path, error);
  }
}

// A link, unlike a rename, never replaces a file that appeared meanwhile.
async function moveIntoPlace(partial: string, path: string, replace: boolean): Promise<void> {
  try {
    if (replace) return await Deno.rename(partial, path);
    await Deno.link(partial, path);
    await Deno.remove(partial);
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) throw refuseExisting(path);
    if (replace || await exists(path)) throw explainFileError(path, error);
    // Not every file system has hard links.
    await Deno.rename(partial, path);
  }
}

function explainFileError(path: string, error: unknown): Exit {
  const words = formatReason(error);
  const full = /ENOSPC|EDQUOT|No space|quota/i.test(words);
  return new Exit(
    full ? EXIT.tryAgain : EXIT.unexpected,
    `Cannot write ${path}: ${full ? "the disk is full" : words}`,
  );
}
