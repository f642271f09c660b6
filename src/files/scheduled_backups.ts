import { join } from "node:path";
import { syncPath } from "../base/whole_file.ts";

// Removes only files with such names, so an operator's own files stay.
const SCHEDULED_NAME = /^svc-scheduled-\d{8}-\d{6}\.tar$/;
const PARTIAL_NAME = /^\.svc-scheduled-.*\.part$/;

interface BackupFile {
  folder: string;
  name: string;
  content: ReadableStream<Uint8Array>;
}

/** Formats the name of a scheduled backup. Names sort by time. */
export function formatBackupName(at: number): string {
  const stamp = new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `svc-scheduled-${stamp}.tar`;
}

/**
 * Writes a backup that only its owner can read. A temporary name keeps a partial file from getting the final name.
 * Throws the cause of a failure and removes the partial file.
 */
export async function storeBackup({ folder, name, content }: BackupFile, signal: AbortSignal): Promise<void> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  await removeParts(folder);
  const partial = join(folder, `.${name}.part`);
  const file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
  try {
    try {
      for await (const chunk of content) {
        signal.throwIfAborted();
        for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
      }
      await file.sync();
    } finally {
      file.close();
    }
    await Deno.rename(partial, join(folder, name));
  } catch (error) {
    await Deno.remove(partial).catch(() => {});
    throw error;
  }
  await syncPath(folder);
}

/**
 * Removes all scheduled backups but the newest `keep`. A name later than `newest`, which was just written, comes from a
 * wrong clock and is removed first.
 */
export async function removeOldBackups(folder: string, keep: number, newest: string): Promise<void> {
  const names = (await listNames(folder)).filter((name) => SCHEDULED_NAME.test(name)).sort();
  const order = [...names.filter((name) => name > newest), ...names.filter((name) => name <= newest)];
  for (const name of order.slice(0, Math.max(0, order.length - keep))) await Deno.remove(join(folder, name));
}

// Removes partial files of a killed service.
async function removeParts(folder: string): Promise<void> {
  for (const name of await listNames(folder)) {
    if (PARTIAL_NAME.test(name)) await Deno.remove(join(folder, name));
  }
}

async function listNames(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).filter((entry) => entry.isFile).map(({ name }) =>
    name
  );
}
