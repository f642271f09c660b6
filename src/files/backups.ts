import { join } from "node:path";
import { syncPath } from "../base/whole_file.ts";

// Only files with such names are ever removed: what an operator puts there stays.
const OURS = /^svc-scheduled-\d{8}-\d{6}\.tar$/;
const OUR_PARTS = /^\.svc-scheduled-.*\.part$/;

/** A file that is to be written. */
interface Incoming {
  folder: string;
  name: string;
  content: ReadableStream<Uint8Array>;
}

/** The name of a backup that the configuration asked for; in the order of their names the newest is last. */
export function scheduledName(at: number): string {
  const stamp = new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `svc-scheduled-${stamp}.tar`;
}

/**
 * Writes a backup that only its owner may read. It has another name until all of it is on the disk, so there is never half
 * a file under the final one (reliability BAK-10). Throws what went wrong, and leaves nothing then.
 */
export async function storeBackup({ folder, name, content }: Incoming, signal: AbortSignal): Promise<void> {
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
 * Removes all scheduled backups of a folder but the newest `keep`. `newest` was made just now: a later name is one that a clock ahead of
 * its time had given, and goes first.
 */
export async function keepNewest(folder: string, keep: number, newest: string): Promise<void> {
  const names = (await namesIn(folder)).filter((name) => OURS.test(name)).sort();
  const order = [...names.filter((name) => name > newest), ...names.filter((name) => name <= newest)];
  for (const name of order.slice(0, Math.max(0, order.length - keep))) await Deno.remove(join(folder, name));
}

// Of a service that was killed while it wrote.
async function removeParts(folder: string): Promise<void> {
  for (const name of await namesIn(folder)) {
    if (OUR_PARTS.test(name)) await Deno.remove(join(folder, name));
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).filter((entry) => entry.isFile).map(({ name }) =>
    name
  );
}
