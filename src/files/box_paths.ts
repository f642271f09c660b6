import { homedir } from "node:os";
import { type DataPaths, isWithin, resolveLinks } from "../base/paths.ts";
import type { BoxOptions, IsolationConfig } from "../domain/workers/isolation.ts";

/** Real paths that no box may show. */
interface ProtectedPaths {
  data: readonly string[];
  /** Configuration files, and the token of a runner. */
  config: readonly string[];
  homes: readonly string[];
  /** Work directories of other workers. */
  others: readonly string[];
  /** Real paths that boxes may read and change (`isolation.box`). */
  bounds: { read: readonly string[]; write: readonly string[] };
}

/** Finds the real paths that boxes may not show, and their bounds. `others` are the work directories of other workers. */
export function findProtectedPaths(
  { root, files }: DataPaths,
  configPaths: readonly string[],
  others: readonly string[],
  { box }: IsolationConfig,
): ProtectedPaths {
  const homes = ["/root", homedir(), Deno.env.get("HOME") ?? "", "/home", "/Users"];
  const resolveAll = (paths: readonly string[]) => [...new Set(paths.map((path) => resolveLinks(path)))];
  return {
    data: resolveAll([root, files]),
    config: resolveAll(configPaths),
    homes: resolveAll(homes.filter((home) => home.startsWith("/") && home !== "/")),
    others: resolveAll(others),
    bounds: { read: resolveAll([...box.read, ...box.write]), write: resolveAll(box.write) },
  };
}

/** Lists the protected paths, which a box covers where something else would show them. */
export function listProtected({ data, config, homes, others }: ProtectedPaths): string[] {
  return [...data, ...config, ...homes, ...others];
}

/**
 * Returns why a worker cannot have a box with this work directory and these paths, or null. `workDir` is null for a directory that the
 * service made. Looks at real paths.
 */
export function findBoxFault(
  { read = [], write = [] }: BoxOptions,
  workDir: string | null,
  guarded: ProtectedPaths,
): { option: "work_dir" | "read" | "write"; reason: string } | null {
  const wanted = [
    ...(workDir === null ? [] : [["work_dir", workDir] as const]),
    ...read.map((path) => ["read", path] as const),
    ...write.map((path) => ["write", path] as const),
  ];
  for (const [option, path] of wanted) {
    const real = resolveLinks(path);
    const fault = findPathFault(option, real, guarded);
    if (fault !== null) {
      return { option, reason: `${path}${real === path ? "" : `, really ${real},`} ${fault}` };
    }
  }
  return null;
}

// Below these, a path is not a place for work. `/tmp` of the machine is not visible in a box.
const SYSTEM_TREES = /^\/(bin|boot|dev|etc|lib(32|64|x32)?|proc|run|sbin|sys|usr|var\/run)(\/|$)/;
const SYSTEM_DIRS =
  /^\/(bin|boot|dev|etc|home|lib(32|64|x32)?|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var(\/[^/]+)?)?$/;
const CLOSED_TREES = /^\/(proc|sys|dev|run|var\/run|boot)(\/|$)/;

/** Returns why a box may not have this real path, as the end of a sentence about it, or null. */
function findPathFault(
  use: "work_dir" | "read" | "write",
  path: string,
  { data, config, homes, others, bounds }: ProtectedPaths,
): string | null {
  // An agent may have made the link.
  if (use !== "work_dir" && !bounds[use].some((bound) => isWithin(path, bound))) {
    return `is not in isolation.box.${use}`;
  }
  if (SYSTEM_DIRS.test(path) || path === "/" || (use === "read" ? CLOSED_TREES : SYSTEM_TREES).test(path)) {
    return "is a path of the system";
  }
  if (data.some((one) => isWithin(one, path) || isWithin(path, one))) {
    return "is, holds or is in the data directory";
  }
  if (config.some((one) => isWithin(one, path))) return "is or holds the configuration file";
  // /home/ada/project is fine, /home/ada is not.
  if (homes.some((home) => isWithin(home, path) || isHomeBelow(path, home))) {
    return "is or holds a home directory";
  }
  const other = others.find((one) => isWithin(one, path) || isWithin(path, one));
  if (other !== undefined && !(use === "work_dir" && other === path)) {
    return `holds or is in ${other}, the work directory of another worker`;
  }
  return isSpecial(path) ? "is a socket or a device" : null;
}

function isHomeBelow(path: string, home: string): boolean {
  return (home === "/home" || home === "/Users") && path.startsWith(`${home}/`) &&
    !path.slice(home.length + 1).includes("/");
}

function isSpecial(path: string): boolean {
  try {
    const { isFile, isDirectory } = Deno.statSync(path);
    return !isFile && !isDirectory;
  } catch {
    return false;
  }
}
