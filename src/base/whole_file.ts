import { dirname } from "node:path";

/**
 * Writes a small file, mode 0600, so that it is there whole or not at all, also after a power failure: under another name first, synced,
 * then renamed. What a process that was killed left is replaced. Throws errors of the file system.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  await (await prepareWhole(path, text)).place();
}

/** The first half of writeWhole(): the text is on the disk, and nothing has changed until it is placed. */
export async function prepareWhole(
  path: string,
  text: string,
): Promise<{ place: () => Promise<void>; drop: () => Promise<void> }> {
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
  const place = async () => {
    await Deno.rename(partial, path);
    await syncPath(dirname(path));
  };
  return { place, drop };
}

/** Waits until a file or a directory is on the disk. Throws when it cannot be opened. */
export async function syncPath(path: string): Promise<void> {
  using file = await Deno.open(path, { read: true });
  // Not every file system can sync a directory.
  await file.sync().catch(() => {});
}
