// Opens directories that agents can write to, so that no symbolic link leads the service out of them (decision 0035).
import { closeSync, constants, lstatSync, mkdirSync, openSync, type Stats } from "node:fs";
import { join, relative, sep } from "node:path";

/** A path below `root`. Symbolic links may lead to `root`, but no component below it may be one. */
export interface Place {
  root: string;
  path: string;
}

/** An agent has put something else where the service expects a regular file or a directory. */
export class UnsafePathError extends Error {
  constructor(path: string, found: string) {
    super(
      `${path} is ${found}. Remove it: agents can write there, so only regular files and directories are used.`,
    );
    this.name = "UnsafePathError";
  }
}

/** A directory while it is open. `address` leads to this directory even when another one takes its path. */
export interface Directory {
  address: string;
  /** The path for people. */
  path: string;
}

type OpenDirectory = Directory & Disposable;

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY;
// Opens nothing but the name: neither waits for a pipe nor wakes a device. Linux only; Node.js has no constant for it.
export const O_PATH = 0o10000000;
/** Whether `/proc/self/fd` has the descriptors of this process: on Linux, since Deno 2.9. */
export const HAS_DESCRIPTOR_PATHS = Deno.build.os === "linux" && hasKernelDescriptors();

function hasKernelDescriptors(): boolean {
  const descriptor = openSync("/", DIRECTORY);
  try {
    return Deno.readLinkSync(`/proc/self/fd/${descriptor}`) === "/";
  } catch {
    return false;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Opens the directory at a place. With `makeMode` it creates missing directories below the root. Throws UnsafePathError for a link and
 * for a file, and errors of the file system.
 */
export function openDirectory({ root, path }: Place, makeMode?: number): OpenDirectory {
  let open = openRoot(root);
  try {
    for (const name of listNames(root, path)) {
      const next = makeMode === undefined ? enter(open, name) : enterOrMake(open, name, makeMode);
      open[Symbol.dispose]();
      open = next;
    }
    return open;
  } catch (error) {
    open[Symbol.dispose]();
    throw error;
  }
}

/** Opens a directory in an open directory, see openDirectory(). */
export function enter(parent: Directory, name: string): OpenDirectory {
  const address = join(parent.address, name);
  const path = join(parent.path, name);
  if (!HAS_DESCRIPTOR_PATHS) {
    requireDirectory(lstatSync(address), path);
    return { address, path, [Symbol.dispose]() {} };
  }
  try {
    return wrap(openSync(address, DIRECTORY | constants.O_NOFOLLOW), path);
  } catch (error) {
    const code = getCode(error);
    if (code === "ENOTDIR" || code === "ELOOP") requireDirectory(lstatSync(address), path);
    throw nameRealPath(error, path);
  }
}

/** Calls `use` with the name and the open parent directory of a place. */
export function usingParent<T>(
  { root, path }: Place,
  use: (parent: Directory, name: string) => T,
): T {
  const names = listNames(root, path);
  const name = names.pop() ?? "";
  using parent = openDirectory({ root, path: join(root, ...names) });
  try {
    return use(parent, name);
  } catch (error) {
    throw nameRealPath(error, path);
  }
}

/** Puts the path into the message of an error that names an address, which means nothing to people. */
export function nameRealPath(error: unknown, path: string): unknown {
  if (error instanceof Error) {
    error.message = error.message.replaceAll(/\/proc\/self\/fd\/\d+(?:\/[^']*)?/g, () => path);
  }
  return error;
}

/** Gives a new file or directory to the owner of its directory, where the service is root and the run is not. */
export function adoptOwner(descriptor: number | string, parent: Directory): void {
  if (!HAS_DESCRIPTOR_PATHS || Deno.uid() !== 0) return;
  const { uid, gid } = Deno.statSync(parent.address);
  const address = typeof descriptor === "string" ? descriptor : `/proc/self/fd/${descriptor}`;
  if (uid !== 0) Deno.chownSync(address, uid, gid);
}

/** Throws UnsafePathError unless this is a regular file with one name. */
export function requireFile(stat: Stats, path: string): void {
  if (!stat.isFile()) throw new UnsafePathError(path, describe(stat));
  if (stat.nlink > 1) throw new UnsafePathError(path, "a file with several hard links");
}

/** Returns null when `work` finds nothing at a path. */
export function nullIfMissing<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (getCode(error) === "ENOENT") return null;
    throw error;
  }
}

function getCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function openRoot(root: string): OpenDirectory {
  if (HAS_DESCRIPTOR_PATHS) return wrap(openSync(root, DIRECTORY), root);
  return { address: root, path: root, [Symbol.dispose]() {} };
}

// Only Linux can address a path relative to an open directory.
function wrap(descriptor: number, path: string): OpenDirectory {
  return { address: `/proc/self/fd/${descriptor}`, path, [Symbol.dispose]: () => closeSync(descriptor) };
}

function enterOrMake(parent: Directory, name: string, mode: number): OpenDirectory {
  try {
    return enter(parent, name);
  } catch (error) {
    if (getCode(error) !== "ENOENT") throw error;
  }
  try {
    mkdirSync(join(parent.address, name), { mode });
  } catch (error) {
    // Another run may have created it meanwhile.
    if (getCode(error) !== "EEXIST") throw error;
    return enter(parent, name);
  }
  const made = enter(parent, name);
  adoptOwner(made.address, parent);
  return made;
}

function listNames(root: string, path: string): string[] {
  const way = relative(root, path);
  const names = way === "" ? [] : way.split(sep);
  if (names.includes("..")) throw new Error(`${path} is not below ${root}`);
  return names;
}

function requireDirectory(stat: Stats, path: string): void {
  if (!stat.isDirectory()) throw new UnsafePathError(path, describe(stat));
}

function describe(stat: Stats): string {
  if (stat.isSymbolicLink()) return "a symbolic link";
  if (stat.isFile()) return "a file";
  if (stat.isDirectory()) return "a directory";
  if (stat.isFIFO()) return "a pipe";
  return stat.isSocket() ? "a socket" : "a device";
}
