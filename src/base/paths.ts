import { basename, dirname, join, resolve, sep } from "node:path";

/** Where everything lies in a data directory. */
export interface DataPaths {
  root: string;
  lock: string;
  secretKey: string;
  /** The server's address, for `ctl`. */
  serverFile: string;
  /** What all servers of one database share (files_dir): uploads and logs. The data directory itself when nothing else is said. */
  files: string;
  logs: string;
  uploads: string;
  /** Which database the files belong to. */
  filesMarker: string;
  /** The id under which this data directory holds a database on a libSQL server. */
  ownerId: string;
  /** One private directory per run, removed after it. */
  runs: string;
  /** The first directory on an agent's PATH. */
  bin: string;
  /** Default work directories. */
  workers: string;
  /** Which database belongs to this directory. */
  marker: string;
  /** A backup, and a restore, while it is made; nothing in it is worth keeping. */
  backup: string;
  restore: string;
  /** Exists while a restore changes things; the service does not start then. */
  restoring: string;
  /** State of engines by worker: logins and sessions. */
  state: string;
  /** Copies of the database from before upgrades. */
  backups: string;
  /** Where a compiled svc keeps libSQL's addon unpacked. */
  addon: string;
}

/** The layout of a data directory, and of the directory of its files where that is another one. */
export function dataPaths(root: string, files = root): DataPaths {
  return {
    root,
    lock: join(root, "svc.lock"),
    secretKey: join(root, "secret.key"),
    serverFile: join(root, "server.json"),
    files,
    logs: join(files, "logs"),
    uploads: join(files, "uploads"),
    filesMarker: join(files, "files.json"),
    ownerId: join(root, "owner.id"),
    runs: join(root, "runs"),
    bin: join(root, "bin"),
    workers: join(root, "workers"),
    marker: join(root, "database.json"),
    backup: join(root, "backup.part"),
    restore: join(root, "restore.part"),
    restoring: join(root, "restoring"),
    state: join(root, "state"),
    backups: join(root, "backups"),
    addon: join(root, "addon"),
  };
}

/** `svc` as agents call it. */
export function ctlPath(paths: DataPaths): string {
  return join(paths.bin, "svc");
}

/** The log of an execution or bee run. The id is a checked UUID; its end spreads the files over 256 directories. */
export function logPath(paths: DataPaths, id: string): string {
  return join(paths.logs, id.slice(-2), `${id}.log`);
}

/** The private directory of one start of an engine, by an id of its own. */
export function runDirOf(paths: DataPaths, id: string): string {
  return join(paths.runs, id);
}

/** The events of an execution or bee run as the engine wrote them, beside its log. */
export function eventsPath(paths: DataPaths, id: string): string {
  return join(paths.logs, id.slice(-2), `${id}.jsonl`);
}

/** Where an engine keeps the state of this worker; null when it uses its usual place (contract 7). */
export function stateDirOf(
  paths: DataPaths,
  workerId: string,
  engine: { name: string; agent: boolean; config: { state: "per_worker" | "shared" } },
): string | null {
  const apart = engine.agent && engine.config.state === "per_worker";
  return apart ? join(paths.state, workerId, engine.name) : null;
}

/** Whether a work directory would expose the service's own data. The default place of work directories does not. */
export function touchesData(path: string, paths: DataPaths): boolean {
  const root = realPath(paths.root);
  const files = realPath(paths.files);
  if (files !== root && (within(path, files) || within(files, path))) return true;
  if (!within(path, root)) return false;
  return path === root || path === realPath(paths.workers) || !within(path, realPath(paths.workers));
}

/** Whether `path` is `folder` or lies in it. */
export function within(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

const LINKS_MAX = 40;

/** The path with symbolic links resolved, even when their targets do not exist yet. */
export function realPath(path: string, links = 0): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    const parent = dirname(path);
    if (parent === path) return path;
    const here = join(realPath(parent, links), basename(path));
    const target = linkOf(here);
    return target === null || links >= LINKS_MAX ? here : realPath(resolve(dirname(here), target), links + 1);
  }
}

function linkOf(path: string): string | null {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return null;
  }
}
