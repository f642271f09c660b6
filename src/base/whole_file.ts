import { dirname } from "node:path";

/**
 * Writes a small file atomically, with mode 0600: writes and syncs a partial file, then renames it. After a power failure
 * the path has the old file or the new one. Replaces a partial file that a killed process left. Throws file system errors.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  const partial = `${path}.part`;
  const drop = () => Deno.remove(partial).catch(() => {});
  await drop();
  try {
    using file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
  } catch (error) {
    await drop();
    throw error;
  }
  await Deno.rename(partial, path);
  await syncPath(dirname(path));
}

/** Syncs a file or a directory to disk. Throws when it cannot be opened. */
export async function syncPath(path: string): Promise<void> {
  using file = await Deno.open(path, { read: true });
  // Not every file system can sync a directory.
  await file.sync().catch(() => {});
}
