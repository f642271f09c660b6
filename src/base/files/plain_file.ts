// Reads and writes regular files with one name below directories that agents can write to (decision 0035).
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import {
  adoptOwner,
  type Directory,
  HAS_DESCRIPTOR_PATHS,
  nullIfMissing,
  O_PATH,
  openDirectory,
  type Place,
  requireFile,
  UnsafePathError,
  usingParent,
} from "./open_directory.ts";

/**
 * Reads the last `maxBytes` of a file. Returns null when the file does not exist. Throws UnsafePathError for a link, a pipe, a device and a
 * directory, and never waits for one.
 */
export function readPlainEnd(place: Place, maxBytes: number): { text: string; isWhole: boolean } | null {
  const found = readEnd(place, maxBytes);
  return found && { text: new TextDecoder().decode(found.bytes), isWhole: found.isWhole };
}

function readEnd(place: Place, maxBytes: number): { bytes: Uint8Array; isWhole: boolean } | null {
  return nullIfMissing(() =>
    usingParent(place, (parent, name) =>
      usingFile(parent, name, constants.O_RDONLY, (file, size) => {
        const bytes = new Uint8Array(Math.min(size, maxBytes));
        const start = size - bytes.length;
        let at = 0;
        for (let read = 1; read > 0 && at < bytes.length; at += read) {
          read = readSync(file, bytes, at, bytes.length - at, start + at);
        }
        return { bytes: bytes.subarray(0, at), isWhole: size <= maxBytes };
      }))
  );
}

/** Reads a whole file as readPlain() does, without decoding it. */
export function readPlainBytes(place: Place, maxBytes: number): Uint8Array | null {
  const found = readEnd(place, maxBytes);
  if (found?.isWhole === false) throw new Error(`${place.path} has more than ${maxBytes} bytes`);
  return found?.bytes ?? null;
}

/** Reads a whole file as readPlainEnd() does. Also throws Error for a file larger than `maxBytes`. */
export function readPlain(place: Place, maxBytes: number): string | null {
  const found = readPlainEnd(place, maxBytes);
  if (found?.isWhole === false) throw new Error(`${place.path} has more than ${maxBytes} bytes`);
  return found?.text ?? null;
}

/** Creates a file with exactly this mode. Throws an error when its name is taken. */
export function createPlain(place: Place, bytes: Uint8Array, mode: number): void {
  usingParent(place, (parent, name) => {
    createFile(parent, name, mode, bytes);
    // The umask of the service has changed the mode.
    usingFile(parent, name, constants.O_RDONLY, (file) => fchmodSync(file, mode));
  });
}

/** Overwrites a file in place, or creates it. Throws UnsafePathError as readPlainEnd() does. */
export function writePlain(place: Place, text: string, mode: number): void {
  usingParent(place, (parent, name) => {
    const isWritten = nullIfMissing(() =>
      usingFile(parent, name, constants.O_WRONLY, (file) => {
        ftruncateSync(file);
        writeAll(file, text);
        return true;
      })
    );
    if (isWritten === null) createFile(parent, name, mode, text);
  });
}

/** Replaces a file atomically, with mode 0600. Throws UnsafePathError for anything but a file. */
export function replacePlain(place: Place, text: string): void {
  usingParent(place, (parent, name) => {
    const present = nullIfMissing(() => lstatSync(join(parent.address, name)));
    if (present !== null) requireFile(present, place.path);
    const partial = `.${crypto.randomUUID()}.part`;
    createFile(parent, partial, 0o600, text);
    try {
      renameSync(join(parent.address, partial), join(parent.address, name));
    } catch (error) {
      unlinkSync(join(parent.address, partial));
      throw error;
    }
  });
}

/** Creates a directory and the missing ones between it and the root, with mode 0700. */
export function makePlainDir(place: Place): void {
  openDirectory(place, 0o700)[Symbol.dispose]();
}

/** Removes a file, or a link instead of its target. Does nothing when it is missing. */
export function removePlain(place: Place): void {
  nullIfMissing(() => usingParent(place, (parent, name) => unlinkSync(join(parent.address, name))));
}

/** Lists the names in a directory. Returns none when it does not exist. */
export async function listPlain(place: Place): Promise<string[]> {
  const open = nullIfMissing(() => openDirectory(place));
  if (open === null) return [];
  using directory = open;
  return (await Array.fromAsync(Deno.readDir(directory.address))).map(({ name }) => name);
}

// Opens the name alone first: a file keeps its identity between the check and the use, and nothing else is ever opened.
function usingFile<T>(
  parent: Directory,
  name: string,
  flags: number,
  use: (file: number, size: number) => T,
): T {
  const address = join(parent.address, name);
  const path = join(parent.path, name);
  const held = HAS_DESCRIPTOR_PATHS ? openSync(address, O_PATH | constants.O_NOFOLLOW) : null;
  try {
    const found = held === null ? lstatSync(address) : fstatSync(held);
    requireFile(found, path);
    const file = openSync(
      held === null ? address : `/proc/self/fd/${held}`,
      flags | constants.O_NONBLOCK | (held === null ? constants.O_NOFOLLOW : 0),
    );
    try {
      const { ino, dev, size } = fstatSync(file);
      if (ino !== found.ino || dev !== found.dev) throw new UnsafePathError(path, "another file than before");
      return use(file, size);
    } finally {
      closeSync(file);
    }
  } finally {
    if (held !== null) closeSync(held);
  }
}

function createFile(parent: Directory, name: string, mode: number, content: string | Uint8Array): void {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  const file = openSync(join(parent.address, name), flags, mode);
  try {
    adoptOwner(file, parent);
    writeAll(file, content);
  } finally {
    closeSync(file);
  }
}

function writeAll(file: number, content: string | Uint8Array): void {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
}
