/**
 * Writes a small file, mode 0600, so that it is there whole or not at all, also after a power failure: under another name first, synced,
 * then renamed. What a process that was killed left is replaced. Throws errors of the file system.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  const partial = `${path}.new`;
  await Deno.remove(partial).catch(() => {});
  try {
    using file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
  } catch (error) {
    await Deno.remove(partial).catch(() => {});
    throw error;
  }
  await Deno.rename(partial, path);
}
