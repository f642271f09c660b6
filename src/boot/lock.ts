import { dirname } from "node:path";

/** The data directory belongs to another server that is alive. Exit code 5 (contract 6). */
export class LockedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "LockedError";
  }
}

// Deno before 2.9 has no way to try a lock without waiting for it.
const WAIT_MS = 500;

/**
 * Takes the data directory for this process: flock on a file of its own, never on the database (facts, libSQL).
 * It is free again when the holder ends, however it ends. Throws LockedError that names the holder.
 */
export async function lockDataDirectory(path: string): Promise<Deno.FsFile> {
  const file = await Deno.open(path, { create: true, read: true, write: true, mode: 0o600 }).catch(
    (error) => {
      throw unusable(dirname(path), error);
    },
  );
  if (!await taken(file)) {
    const holder = await Deno.readTextFile(path).catch(() => "");
    const pid = /^\d+/.exec(holder)?.[0];
    throw new LockedError(
      `Cannot use this data directory: another server is running on it${
        pid === undefined ? "" : ` (pid ${pid})`
      }; ` +
        "stop that one or choose another data_dir",
    );
  }
  await file.truncate();
  await file.write(new TextEncoder().encode(`${Deno.pid}\n`));
  return file;
}

function unusable(path: string, error: Error): Error {
  const reason = error.message.replace(/ \(os error.*/s, "");
  return new Error(
    `Cannot use the data directory ${path}: ${reason}; set data_dir to a directory that this user may write to`,
    { cause: error },
  );
}

async function taken(file: Deno.FsFile): Promise<boolean> {
  if (typeof file.tryLock === "function") return await file.tryLock(true);
  const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), WAIT_MS));
  return await Promise.race([file.lock(true).then(() => true), late]);
}
