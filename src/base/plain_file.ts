import { closeSync, constants, fstatSync, openSync, readSync, rmSync, writeSync } from "node:fs";

/**
 * The end of a regular file, at most `maxBytes` of it; null when there is none. For places that an agent can write to: what is a pipe, a
 * device or a directory is refused and never waited for. Throws Error.
 */
export function readPlainEnd(path: string, maxBytes: number): { text: string; isWhole: boolean } | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw error;
  }
  try {
    const size = sizeOf(file, path);
    const bytes = new Uint8Array(Math.min(size, maxBytes));
    const read = bytes.length === 0 ? 0 : readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return { text: new TextDecoder().decode(bytes.subarray(0, read)), isWhole: size <= maxBytes };
  } finally {
    closeSync(file);
  }
}

/** The text of a regular file, as readPlainEnd(). Throws Error for a larger one, too. */
export function readPlain(path: string, maxBytes: number): string | null {
  const found = readPlainEnd(path, maxBytes);
  if (found?.isWhole === false) throw new Error(`${path} has more than ${maxBytes} bytes`);
  return found?.text ?? null;
}

/** Writes a regular file anew, as readPlainEnd() reads it. Throws Error. */
export function writePlain(path: string, text: string, mode: number): void {
  const file = openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK,
    mode,
  );
  try {
    sizeOf(file, path);
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}

/** Puts a file, mode 0600, in the place of what is there: read at any moment, it is whole. Throws errors of the file system. */
export function replacePlain(path: string, text: string): void {
  const partial = `${path}.part`;
  // What an agent may have put there instead is not opened.
  rmSync(partial, { recursive: true, force: true });
  Deno.writeTextFileSync(partial, text, { mode: 0o600, createNew: true });
  Deno.renameSync(partial, path);
}

function sizeOf(file: number, path: string): number {
  const stat = fstatSync(file);
  if (!stat.isFile()) throw new Error(`${path} is no regular file`);
  return stat.size;
}
