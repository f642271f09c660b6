import { homedir } from "node:os";
import { dirname, isAbsolute, resolve } from "node:path";
import { conflict, invalid } from "../../domain/call/error.ts";
import { mountsIn, replaceableAt } from "../../files/removal.ts";
import { type DataPaths, realPath, touchesData, within } from "../../base/paths.ts";

/** The absolute form of a requested work directory. Throws `invalid_request` when it would expose the data directory. */
export function resolveWorkDir(requested: string, paths: DataPaths): string {
  const path = isAbsolute(requested) ? resolve(requested) : resolve(Deno.cwd(), requested);
  if (touchesData(path, paths) || touchesData(realPath(path), paths)) {
    throw invalid(
      "work_dir",
      `${path} is the service's own data directory or lies in it; choose a directory of the worker's own`,
    );
  }
  return path;
}

/** Makes a work directory with its parents. A failure is not reported here: it fails the run (contract 3, Worker). */
export async function makeWorkDir(path: string): Promise<void> {
  await Deno.mkdir(path, { recursive: true, mode: 0o755 }).catch(() => {});
}

/** Why no run is possible in this directory; null when one is. A missing directory is made, as a run would (contract 3, Worker). */
export async function workDirFault(path: string): Promise<string | null> {
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o755 });
    return (await Deno.stat(path)).isDirectory ? null : `the work directory ${path} is not a directory`;
  } catch (error) {
    if (error instanceof Deno.errors.NotADirectory) {
      return `the work directory ${path} lies below a file, not a directory`;
    }
    if (error instanceof Deno.errors.AlreadyExists) return `the work directory ${path} is not a directory`;
    const reason = error instanceof Error ? error.message : String(error);
    return `the work directory ${path} cannot be used: ${reason}`;
  }
}

/**
 * Throws `conflict` when deleting this directory would delete more than a worker's own: `/`, a home, the data
 * directory, an ancestor of those, or a directory that holds or is another worker's (contract 3, Worker); a directory
 * of the system, one that is or holds a mount point, or one that another user could replace (decision 0020).
 */
export function checkDeletable(
  path: string,
  paths: DataPaths,
  others: { id: string; work_dir: string }[],
): void {
  const real = realPath(path);
  const refuse = (why: string) =>
    conflict(
      `Cannot delete the work directory ${path}: it is ${why}. Nothing was deleted; leave out delete_work_dir`,
    );
  if (real === "/" || dirname(real) === real) throw refuse("the root of the file system");
  if (isHome(real)) throw refuse("a home directory");
  if (isOfSystem(real)) throw refuse("a directory of the system");
  const [mount] = mountsIn(real);
  if (mount !== undefined) throw refuse(mount === real ? "a mount point" : `where ${mount} is mounted`);
  const open = replaceableAt(realPath(dirname(path)));
  if (open !== null) throw refuse(`below ${open}, where others may put another directory in its place`);
  const homes = [homedir(), Deno.env.get("HOME") ?? ""].filter((home) => home !== "").map(realPath);
  if (homes.some((home) => within(home, real))) throw refuse("or holds a home directory");
  const root = realPath(paths.root);
  if (within(root, real)) throw refuse("or holds the service's data directory");
  if (touchesData(real, paths)) throw refuse("part of the service's own data");
  for (const other of others) {
    if (within(realPath(other.work_dir), real)) {
      throw refuse(`or holds the work directory of worker ${other.id}`);
    }
    if (within(real, realPath(other.work_dir))) {
      throw refuse(`part of the work directory of worker ${other.id}`);
    }
  }
}

function isHome(path: string): boolean {
  return path === "/root" || path === "/home" || path === "/Users" || dirname(path) === "/home" ||
    dirname(path) === "/Users";
}

// The directories of a system, and the first level below those that hold the most.
const SYSTEM =
  /^\/(bin|boot|dev|etc|lib(32|64|x32)?|media|mnt|opt|proc|run|sbin|srv|sys|tmp|usr|var|Applications|Library|System|Volumes|private)$|^\/(usr|var|private)\/[^/]+$/;

function isOfSystem(path: string): boolean {
  return SYSTEM.test(path) || /^\/(dev|proc|sys)\//.test(path);
}
