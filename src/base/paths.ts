import { basename, dirname, join, resolve, sep } from "node:path";

/** Paths in a data directory. */
export interface DataPaths {
  root: string;
  lock: string;
  secretKey: string;
  /** The signing key of an unfinished rotation. */
  nextKey: string;
  /** The server's address, for `ctl`. */
  serverFile: string;
  /** Files that all servers of one database share (files_dir): uploads and logs. Default: the data directory. */
  files: string;
  logs: string;
  uploads: string;
  /** Names the database that the files belong to. */
  filesMarker: string;
  /** The id under which this data directory owns a database on a libSQL server. */
  ownerId: string;
  /** A private directory per run. The service deletes it after the run. */
  runs: string;
  /** A directory per launch with the token of its runner. */
  launches: string;
  /** The first directory on an agent's PATH. */
  bin: string;
  /** The /etc of boxes. */
  etc: string;
  workers: string;
  /** On a runner: a directory for each run of a worker without a home. */
  homes: string;
  /** Repositories of workers: a mirror and worktrees each. */
  trees: string;
  /** The skills of workers, a file each. */
  skills: string;
  /** Names the database that belongs to this directory. */
  marker: string;
  /** Partial backup and restore. Safe to delete. */
  backup: string;
  restore: string;
  /** Exists while a restore changes files. The service does not start then. */
  restoring: string;
  /** State of engines by worker: logins and sessions. */
  state: string;
  /** Copies of the database from before upgrades. */
  backups: string;
  /** libSQL's addon, unpacked from a compiled svc. */
  addon: string;
}

/** Returns the layout of a data directory. `files` is the directory of shared files. */
export function buildDataPaths(root: string, files = root): DataPaths {
  return {
    root,
    lock: join(root, "svc.lock"),
    secretKey: join(root, "secret.key"),
    nextKey: join(root, "secret.key.new"),
    serverFile: join(root, "server.json"),
    files,
    logs: join(files, "logs"),
    uploads: join(files, "uploads"),
    filesMarker: join(files, "files.json"),
    ownerId: join(root, "owner.id"),
    runs: join(root, "runs"),
    launches: join(root, "launches"),
    bin: join(root, "bin"),
    etc: join(root, "etc"),
    workers: join(root, "workers"),
    homes: join(root, "homes"),
    trees: join(root, "trees"),
    skills: join(root, "skills"),
    marker: join(root, "database.json"),
    backup: join(root, "backup.part"),
    restore: join(root, "restore.part"),
    restoring: join(root, "restoring"),
    state: join(root, "state"),
    backups: join(root, "backups"),
    addon: join(root, "addon"),
  };
}

/** Returns the path of `svc` for agents. */
export function getCtlPath(paths: DataPaths): string {
  return join(paths.bin, "svc");
}

/**
 * Returns the log path of an execution or bee run. The id is a checked UUID. Its last digits spread the files over 256
 * directories.
 */
export function getLogPath(paths: DataPaths, id: string): string {
  return join(paths.logs, id.slice(-2), `${id}.log`);
}

/** Returns the private directory of one engine start. */
export function getRunDir(paths: DataPaths, id: string): string {
  return join(paths.runs, id);
}

/** Returns the path of the engine's raw events, next to the log. */
export function getEventsPath(paths: DataPaths, id: string): string {
  return join(paths.logs, id.slice(-2), `${id}.jsonl`);
}

/** Returns where an engine keeps this worker's state, or null when it uses its default place. */
export function getStateDir(
  paths: DataPaths,
  workerId: string,
  engine: { name: string; agent: boolean; config: { state: "per_worker" | "shared" } },
): string | null {
  const apart = engine.agent && engine.config.state === "per_worker";
  return apart ? join(paths.state, workerId, engine.name) : null;
}

/** Returns the directory of all states, which an agent cannot replace. */
export function getStateRoot(stateDir: string): string {
  return dirname(dirname(stateDir));
}

/** Whether a path leads to something. Follows links. */
export function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Returns the work directory that the service makes for a worker. With a repository, its mirror and worktrees lie there. */
export function getOwnWorkDir(paths: DataPaths, workerId: string, hasRepo: boolean): string {
  return join(hasRepo ? paths.trees : paths.workers, workerId);
}

/** Returns the bare repository of a worker, which no run can write in a box. */
export function getMirrorDir(paths: DataPaths, workerId: string): string {
  return join(paths.trees, workerId, "mirror.git");
}

/** Start of the names of bundles with the commits of runs on runners, next to the mirror. */
export const SENT_PREFIX = "sent-";

/** Returns the worktree with this short id. */
export function getTreeDir(paths: DataPaths, workerId: string, shortId: string): string {
  return join(paths.trees, workerId, "work", shortId);
}

/** Returns the directory of one run of a worker without a home, on a runner. */
export function getHomeDir(paths: DataPaths, executionId: string): string {
  return join(paths.homes, executionId);
}

/** Returns whether a work directory would expose the service's own data. Paths below the default work directories do not. */
export function touchesData(path: string, paths: DataPaths): boolean {
  const root = resolveLinks(paths.root);
  const files = resolveLinks(paths.files);
  if (files !== root && (isWithin(path, files) || isWithin(files, path))) return true;
  if (!isWithin(path, root)) return false;
  return [paths.workers, paths.homes].map((folder) => resolveLinks(folder)).every((folder) =>
    path === folder || !isWithin(path, folder)
  );
}

/** Returns whether `path` is `folder` or lies below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

const LINKS_MAX = 40;

/** Resolves symbolic links, even when their targets do not exist yet. */
export function resolveLinks(path: string, links = 0): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    const parent = dirname(path);
    if (parent === path) return path;
    const here = join(resolveLinks(parent, links), basename(path));
    const target = readLink(here);
    return target === null || links >= LINKS_MAX
      ? here
      : resolveLinks(resolve(dirname(here), target), links + 1);
  }
}

function readLink(path: string): string | null {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return null;
  }
}
