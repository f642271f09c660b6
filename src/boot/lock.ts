import { dirname } from "node:path";
import { realPath } from "../base/paths.ts";

/** The data directory belongs to another server that is alive. Exit code 5 (contract 6). */
export class LockedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "LockedError";
  }
}

// Deno before 2.9 has no way to try a lock without waiting for it.
const WAIT_MS = 500;

/** The lock of a server, held until its process ends. */
export interface DataLock {
  /** The lock file, `svc.lock`. */
  file: Deno.FsFile;
  /** Releases it. */
  close: () => void;
}

/**
 * Takes the data directory for this process: flock on a file of its own and on the directory itself, so that nothing is
 * won by removing the file; never on the database (facts, libSQL 3). A database elsewhere has a lock file beside it. All
 * locks are free again when the process ends, however it ends. Throws LockedError that names the holder.
 */
export async function lockDataDirectory(path: string, database: string | null): Promise<DataLock> {
  const root = dirname(path);
  const file = await openLock(path, (error) => unusable(root, error));
  const held = [file];
  const close = () => held.forEach((one) => one.close());
  try {
    if (!await taken(file)) throw inUse(path);
    const directory = await lockable(root);
    if (directory !== null) {
      held.push(directory);
      if (!await taken(directory)) throw inUse(path);
    }
    if (database !== null && database !== ":memory:" && realPath(dirname(database)) !== realPath(root)) {
      const beside = await openLock(`${database}.lock`, (error) => unreachable(database, error));
      held.push(beside);
      if (!await taken(beside)) throw inUse(`${database}.lock`);
      await note(beside);
    }
  } catch (error) {
    close();
    throw error;
  }
  await note(file);
  return { file, close };
}

async function openLock(path: string, refusal: (error: Error) => Error): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { create: true, read: true, write: true, mode: 0o600 });
  } catch (error) {
    throw refusal(error instanceof Error ? error : new Error(String(error)));
  }
}

// Some network file systems cannot lock a directory; there only the file is locked.
async function lockable(directory: string): Promise<Deno.FsFile | null> {
  const file = await Deno.open(directory).catch(() => null);
  if (file === null || typeof file.tryLock !== "function") return file;
  const probe = await file.tryLock(false).then(() => true, () => false);
  if (probe) return file;
  file.close();
  return null;
}

async function note(file: Deno.FsFile): Promise<void> {
  await file.truncate();
  await file.write(new TextEncoder().encode(`${Deno.pid}\n`));
}

function inUse(path: string): LockedError {
  const pid = /^\d+/.exec(holderOf(path))?.[0];
  return new LockedError(
    `Cannot use this data directory: another server is running on it${
      pid === undefined ? "" : ` (pid ${pid})`
    }; ` +
      "stop that one or choose another data_dir",
  );
}

function holderOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}

function unusable(path: string, error: Error): Error {
  const reason = error.message.replace(/ \(os error.*/s, "");
  return new Error(
    `Cannot use the data directory ${path}: ${reason}; set data_dir to a directory that this user may write to`,
    { cause: error },
  );
}

function unreachable(database: string, cause: Error): Error {
  const advice = "check that its directory exists and that this user may write there";
  return new Error(`Cannot open the database ${database}: ${advice}`, { cause });
}

async function taken(file: Deno.FsFile): Promise<boolean> {
  if (typeof file.tryLock === "function") return await file.tryLock(true);
  const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), WAIT_MS));
  return await Promise.race([file.lock(true).then(() => true), late]);
}
