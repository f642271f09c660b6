import { closeSync, constants, fstatSync, openSync, readSync, rmSync, writeSync } from "node:fs";

/**
 * Reads the last `maxBytes` of a regular file. Returns null when the file does not exist. For places that an agent can write
 * to: throws Error for a pipe, a device or a directory and never waits for one.
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
    const size = readSize(file, path);
    const bytes = new Uint8Array(Math.min(size, maxBytes));
    const read = bytes.length === 0 ? 0 : readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return { text: new TextDecoder().decode(bytes.subarray(0, read)), isWhole: size <= maxBytes };
  } finally {
    closeSync(file);
  }
}

/** Reads a whole regular file as readPlainEnd() does. Also throws Error for a file larger than `maxBytes`. */
export function readPlain(path: string, maxBytes: number): string | null {
  const found = readPlainEnd(path, maxBytes);
  if (found?.isWhole === false) throw new Error(`${path} has more than ${maxBytes} bytes`);
  return found?.text ?? null;
}

/** Overwrites a regular file. Throws Error as readPlainEnd() does. */
export function writePlain(path: string, text: string, mode: number): void {
  const file = openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK,
    mode,
  );
  try {
    readSize(file, path);
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}

/** Replaces a file atomically, with mode 0600. Throws file system errors. */
export function replacePlain(path: string, text: string): void {
  const partial = `${path}.part`;
  // Removes the path without opening it: an agent may have put a link or a pipe there.
  rmSync(partial, { recursive: true, force: true });
  Deno.writeTextFileSync(partial, text, { mode: 0o600, createNew: true });
  Deno.renameSync(partial, path);
}

function readSize(file: number, path: string): number {
  const stat = fstatSync(file);
  if (!stat.isFile()) throw new Error(`${path} is not a regular file`);
  return stat.size;
}
