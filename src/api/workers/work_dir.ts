import { homedir } from "node:os";
import { dirname, isAbsolute, resolve } from "node:path";
import { conflict, invalid } from "../../domain/call/error.ts";
import { findReplaceable, listMounts } from "../../files/removal.ts";
import { type DataPaths, isWithin, resolveLinks, touchesData } from "../../base/paths.ts";

/** Resolves a requested work directory to an absolute path. Throws `invalid_request` when it would expose the data directory. */
export function resolveWorkDir(requested: string, paths: DataPaths): string {
  const path = isAbsolute(requested) ? resolve(requested) : resolve(Deno.cwd(), requested);
  if (touchesData(path, paths) || touchesData(resolveLinks(path), paths)) {
    throw invalid("work_dir", `${path} is in the service's data directory. Choose a directory outside it.`);
  }
  return path;
}

/** Creates a work directory for a new worker. Throws `invalid_request` if the path is a file or the directory cannot be created. */
export async function makeWorkDir(path: string, field = "work_dir"): Promise<void> {
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o755 });
  } catch (error) {
    const fault = error instanceof Deno.errors.NotFound
      ? `${path} cannot be created`
      : formatFault(path, error);
    throw invalid(field, `${fault}. Choose another directory.`);
  }
}

/** Returns why no run can use a work directory, or null. */
export async function findWorkDirFault(path: string): Promise<string | null> {
  try {
    return (await Deno.stat(path)).isDirectory ? null : `the work directory ${path} is not a directory`;
  } catch (error) {
    return `the work directory ${formatFault(path, error)}`;
  }
}

function formatFault(path: string, error: unknown): string {
  if (error instanceof Deno.errors.NotADirectory) return `${path} is below a file, not a directory`;
  if (error instanceof Deno.errors.AlreadyExists) return `${path} is not a directory`;
  if (error instanceof Deno.errors.PermissionDenied) return `${path} cannot be used: no permission`;
  if (error instanceof Deno.errors.NotFound) return `${path} does not exist`;
  const reason = error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error);
  return `${path} cannot be used: ${reason}`;
}

/**
 * Throws `conflict` when a deletion would reach beyond the worker's own files: `/`, a home, the data directory or one
 * of their ancestors, another worker's directory, a system directory, a mount point, or a directory that another user
 * could replace (decision 0020).
 */
export function checkDeletable(
  path: string,
  paths: DataPaths,
  others: { id: string; work_dir: string }[],
): void {
  const real = resolveLinks(path);
  const buildRefusal = (why: string) =>
    conflict(
      `Cannot delete the work directory ${path}: it is ${why}. Nothing was deleted. Omit delete_work_dir.`,
    );
  if (real === "/" || dirname(real) === real) throw buildRefusal("the root of the file system");
  if (isHome(real)) throw buildRefusal("a home directory");
  if (isSystemDir(real)) throw buildRefusal("a directory of the system");
  const [mount] = listMounts(real);
  if (mount !== undefined) throw buildRefusal(mount === real ? "a mount point" : `where ${mount} is mounted`);
  const open = findReplaceable(resolveLinks(dirname(path)));
  if (open !== null) throw buildRefusal(`below ${open}, where other users can replace it`);
  const homes = [homedir(), Deno.env.get("HOME") ?? ""].filter((home) => home !== "").map(resolveLinks);
  if (homes.some((home) => isWithin(home, real))) throw buildRefusal("or holds a home directory");
  const root = resolveLinks(paths.root);
  if (isWithin(root, real)) throw buildRefusal("or holds the service's data directory");
  if (touchesData(real, paths)) throw buildRefusal("part of the service's own data");
  for (const other of others) {
    if (isWithin(resolveLinks(other.work_dir), real)) {
      throw buildRefusal(`or holds the work directory of worker ${other.id}`);
    }
    if (isWithin(real, resolveLinks(other.work_dir))) {
      throw buildRefusal(`part of the work directory of worker ${other.id}`);
    }
  }
}

function isHome(path: string): boolean {
  return path === "/root" || path === "/home" || path === "/Users" || dirname(path) === "/home" ||
    dirname(path) === "/Users";
}

// System directories, and the first level below /usr, /var and /private.
const SYSTEM_DIRS =
  /^\/(bin|boot|dev|etc|lib(32|64|x32)?|media|mnt|opt|proc|run|sbin|srv|sys|tmp|usr|var|Applications|Library|System|Volumes|private)$|^\/(usr|var|private)\/[^/]+$/;

function isSystemDir(path: string): boolean {
  return SYSTEM_DIRS.test(path) || /^\/(dev|proc|sys)\//.test(path);
}
