import { dirname } from "node:path";
import { resolveLinks } from "../base/paths.ts";

/** Another running server uses the data directory. Exit code 5 (contract 6). */
export class LockedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "LockedError";
  }
}

// The base of an executable may be older than Deno 2.9, which has no tryLock().
const WAIT_MS = 500;

export interface DataLock {
  /** The lock file, `svc.lock`. */
  file: Deno.FsFile;
  close: () => void;
}

/** Creates the directory with mode 0700 if it is missing. Returns its real path. Throws an Error for the operator. */
export async function openDataDirectory(path: string, key = "data_dir"): Promise<string> {
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    return await Deno.realPath(path);
  } catch (error) {
    const why = error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory
      ? "the path or its parent is not a directory"
      : error instanceof Deno.errors.PermissionDenied
      ? "permission denied"
      : error instanceof Error
      ? error.message.replace(/ \(os error.*/, "")
      : String(error);
    const kind = key === "data_dir" ? "data" : "files";
    throw new Error(`Cannot use the ${kind} directory ${path}: ${why}. Set ${key} to another directory.`);
  }
}

/**
 * Locks the data directory for this process with flock on `svc.lock` and on the directory, so that removing the file has no effect. Never
 * locks the database (facts, libSQL 3). A database elsewhere gets a lock file next to it. The kernel releases all locks when the process
 * ends. Throws LockedError that names the holder.
 */
export async function lockDataDirectory(path: string, database: string | null): Promise<DataLock> {
  const root = dirname(path);
  const file = await openLock(path, (error) => createDirectoryError(root, error));
  const files = [file];
  const close = () => files.forEach((one) => one.close());
  try {
    if (!await tryLock(file)) throw createLockedError(path);
    const directory = await openLockableDirectory(root);
    if (directory !== null) {
      files.push(directory);
      if (!await tryLock(directory)) throw createLockedError(path);
    }
    if (
      database !== null && database !== ":memory:" && resolveLinks(dirname(database)) !== resolveLinks(root)
    ) {
      const databaseLock = await openLock(
        `${database}.lock`,
        (error) => createDatabaseError(database, error),
      );
      files.push(databaseLock);
      if (!await tryLock(databaseLock)) throw createLockedError(`${database}.lock`);
      await writePid(databaseLock);
    }
  } catch (error) {
    close();
    throw error;
  }
  await writePid(file);
  return { file, close };
}

async function openLock(path: string, refusal: (error: Error) => Error): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { create: true, read: true, write: true, mode: 0o600 });
  } catch (error) {
    throw refusal(error instanceof Error ? error : new Error(String(error)));
  }
}

// Returns null on network file systems that cannot lock a directory.
async function openLockableDirectory(directory: string): Promise<Deno.FsFile | null> {
  const file = await Deno.open(directory).catch(() => null);
  if (file === null || typeof file.tryLock !== "function") return file;
  const isLockable = await file.tryLock(false).then(() => true, () => false);
  if (isLockable) return file;
  file.close();
  return null;
}

async function writePid(file: Deno.FsFile): Promise<void> {
  await file.truncate();
  await file.write(new TextEncoder().encode(`${Deno.pid}\n`));
}

function createLockedError(path: string): LockedError {
  const pid = /^\d+/.exec(readHolder(path))?.[0];
  return new LockedError(
    `Cannot use this data directory: another server uses it${pid === undefined ? "" : ` (pid ${pid})`}. ` +
      "Stop that server or choose another data_dir.",
  );
}

function readHolder(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}

function createDirectoryError(path: string, error: Error): Error {
  const reason = error.message.replace(/ \(os error.*/s, "");
  return new Error(
    `Cannot use the data directory ${path}: ${reason}. Set data_dir to a directory that this user may write to.`,
    { cause: error },
  );
}

function createDatabaseError(database: string, cause: Error): Error {
  const advice =
    "its lock file cannot be created. Check that the directory exists and that this user may write there.";
  return new Error(`Cannot open the database ${database}: ${advice}`, { cause });
}

async function tryLock(file: Deno.FsFile): Promise<boolean> {
  if (typeof file.tryLock === "function") return await file.tryLock(true);
  const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), WAIT_MS));
  return await Promise.race([file.lock(true).then(() => true), late]);
}
