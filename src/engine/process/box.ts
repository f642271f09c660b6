// Builds the command that starts a program in a box: its own view of the file system, made by bubblewrap (decision 0031).
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import type { BoxLimits } from "../../domain/workers/isolation.ts";
import { concatBytes } from "../../base/bytes.ts";
import { ETC_DIRECTORIES, ETC_FILES } from "./box_etc.ts";
import { addRelay, type BoxNetwork, type BoxSocket } from "./box_network.ts";
import { openDirectory, type Place, usingParent } from "../../base/files/open_directory.ts";
import { exists, getStateRoot, isWithin } from "../../base/paths.ts";
import { NO_BUBBLEWRAP } from "./box_fault.ts";
import { getInputDir, getOutputDir, getTempDir, placeInRunDir } from "../run_dir.ts";
import { findTool } from "./isolation.ts";

/** A user that owns the processes of a box, when the service runs as root. */
export interface BoxUser {
  name: string;
  uid: number;
  gid: number;
}

/** Everything that the processes of one run can see and use. All paths are real paths. */
export interface Box {
  workDir: string;
  /** The engine's state, or null for an engine without one. */
  stateDir: string | null;
  /** The private directory of the run. Its `tmp` is /tmp in the box. */
  runDir: string;
  home: string;
  /** The directory that is /etc in the box, see BoxEtc. */
  etc: string;
  /** Read-only paths that no agent can replace: programs of the engine, and the service's own program. */
  read: readonly string[];
  /** The files of the run's message, read-only. */
  messageFiles: readonly string[];
  /** More paths that the run can read and not change. They may be below paths that agents can change. */
  readOnly: readonly string[];
  /** More paths that the run can change. */
  write: readonly string[];
  /** Symbolic links to create: path and target. */
  links: readonly (readonly [path: string, target: string])[];
  /** Files below the writable directories that the run can read and not change. */
  fixed: readonly string[];
  /** Paths that nothing in the box shows, even below a visible path. */
  hidden: readonly string[];
  /** Null when the service does not run as root. */
  user: BoxUser | null;
  /** Limits of this box, and of all boxes together. They count where control groups are delegated to the service. */
  limits: BoxLimits;
  total: BoxLimits;
  /** The machine's network, or a loopback interface of the box with a relay. */
  network: "host" | BoxNetwork;
}

/** A program to start, with its whole environment. */
interface BoxedProgram {
  command: string;
  args: readonly string[];
  cwd: string;
  env: Record<string, string>;
  umask: number;
}

interface BoxLaunch {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** The first line of stdout, written in the box just before the program starts. Without it, nothing has run. */
const BOX_STARTED = "svc-box-started\n";

// Read-only in every box. If root starts bubblewrap, it mounts all of them except /proc/sys.
const KERNEL_SETTINGS = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];
const SYSTEM_DIRS = ["/usr", "/opt"];
const SYSTEM_LINKS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
// A program outside the box must not load what these name: a worker's files are untrusted.
const LOADER_VARIABLE = /^(LD_|BASH_FUNC_|(GCONV_PATH|LOCPATH|NLSPATH|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4)$)/;

// The shell opens each source, and checks that no part of its path is a symbolic link. Then bubblewrap mounts it by its descriptor, and
// compares the mount with the descriptor. So a link that an agent makes meanwhile is not followed.
const OPEN_DIRECTORY = (fd: number) =>
  `[ -d "$1" ] && exec ${fd}<"$1" && cd -P /proc/self/fd/${fd} && [ "$PWD" = "$1" ] || refuse "$1"; shift; `;
const OPEN_FILE = (fd: number) =>
  `[ -f "$1" ] && exec ${fd}<"$1" && [ "$(${requireTool("readlink")} /proc/self/fd/${fd})" = "$1" ] || ` +
  'refuse "$1"; shift; ';
const REFUSE =
  'refuse() { echo "svc: $1 is missing or a symbolic link, or a part of its path is one" >&2; exit 1; }; ';
const JOIN_GROUP = 'echo 0 >"$1/cgroup.procs" || exit 1; shift; ';
// Dash supports descriptors of one digit only.
const FIRST_FD = 3;
const DASH_FD_MAX = 9;
// Only the user of the box may enter its directories.
const START = 'umask "$1"; cd "$2" || exit 1; printf %s "$0"; shift 2; exec "$@"';
const DROP_ALL = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"];

/** Builds the launch of a program in a box, in a control group or none. Throws an Error that says what is missing. */
export function buildBoxLaunch(
  box: Box,
  program: BoxedProgram,
  joined: string | null = null,
  socket: BoxSocket | null = null,
): BoxLaunch {
  const bwrap = findTool("bwrap");
  if (bwrap === null) throw new Error(NO_BUBBLEWRAP);
  const mounts = listMounts(box);
  const opened = mounts.filter(({ kind }) => kind === "write" || kind === "fixed");
  const open = opened.map(({ source }, at) =>
    (isDirectory(source) ? OPEN_DIRECTORY : OPEN_FILE)(FIRST_FD + at)
  );
  const group = joined === null ? [] : [joined];
  const script = [REFUSE, ...group.map(() => JOIN_GROUP), ...open, 'cd /; exec "$@"'].join("");
  const env = Object.entries(program.env);
  const start = addRelay(START, box.network, socket);
  return {
    command: FIRST_FD + open.length - 1 > DASH_FD_MAX ? requireTool("bash") : "/bin/sh",
    args: [
      ...["-c", script, "svc-box"],
      ...group,
      ...opened.map(({ source }) => source),
      bwrap,
      ...buildNamespaceArgs(box),
      ...buildMountArgs(mounts, box),
      ...env.filter(([name]) => LOADER_VARIABLE.test(name)).flatMap((
        [name, value],
      ) => ["--setenv", name, value]),
      ...["--", ...buildDropArgs(box.user)],
      ...["/bin/sh", "-c", start.script, BOX_STARTED, ...start.args],
      ...[program.umask.toString(8).padStart(4, "0"), program.cwd, program.command, ...program.args],
    ],
    env: Object.fromEntries(env.filter(([name]) => !LOADER_VARIABLE.test(name))),
  };
}

/**
 * Gives the files that the service made for a run to the user of its box. Follows no link, because processes of an agent may be running.
 * Throws UnsafePathError.
 */
export function giveFiles({ user, runDir, stateDir, fixed }: Box): void {
  if (user === null) return;
  const input = getInputDir(runDir);
  for (const path of [runDir, input, getOutputDir(runDir), getTempDir(runDir)]) {
    giveFile(placeInRunDir(path, runDir), user);
  }
  giveEntries(placeInRunDir(input, runDir), user);
  if (stateDir === null) return;
  const root = getStateRoot(stateDir);
  for (const file of fixed.filter((path) => isWithin(path, stateDir))) {
    for (const path of [...listFoldersBetween(stateDir, file), file]) giveFile({ root, path }, user);
  }
}

/** Gives a file to the user of a box. Follows no link. Throws UnsafePathError. */
export function giveFile(place: Place, { uid, gid }: BoxUser): void {
  usingParent(place, (parent, name) => giveEntry(join(parent.address, name), uid, gid));
}

// Before Deno 2.9 there is no lchownSync(). Then the box fails, and the service runs.
function giveEntry(path: string, uid: number, gid: number): void {
  if (fs.lchownSync === undefined) throw new Error("a box of a service that runs as root needs Deno 2.9");
  fs.lchownSync(path, uid, gid);
}

function giveEntries(place: Place, { uid, gid }: BoxUser): void {
  using folder = openDirectory(place);
  for (const { name } of Deno.readDirSync(folder.address)) giveEntry(join(folder.address, name), uid, gid);
}

/** Lists the folders between the state of the engine and a file in it, which the service may have made. */
function listFoldersBetween(stateDir: string, path: string): string[] {
  const folder = dirname(path);
  return folder === stateDir ? [] : [...listFoldersBetween(stateDir, folder), folder];
}

function requireTool(name: string): string {
  const found = findTool(name);
  if (found === null) throw new Error(`a box needs ${name}, which is part of util-linux`);
  return found;
}

function buildNamespaceArgs({ user, network }: Box): string[] {
  return [
    // Root needs no user namespace, and keeps what it needs to become the user of the box.
    ...(user === null ? ["--unshare-user", "--cap-drop", "ALL"] : [
      "--cap-drop",
      "ALL",
      ...["SETUID", "SETGID", "SETPCAP"].flatMap((name) => ["--cap-add", `CAP_${name}`]),
    ]),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--die-with-parent"],
    ...(network === "host" ? [] : ["--unshare-net"]),
  ];
}

function buildDropArgs(user: BoxUser | null): string[] {
  if (user === null) return [];
  return [
    requireTool("setpriv"),
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    "--clear-groups",
    ...DROP_ALL,
    "--",
  ];
}

/**
 * A path of the box. `read`: as the machine has it, read-only. `write`: opened first. `fixed`: opened first, read-only. `hide`: empty,
 * if another mount would show it.
 */
interface Mount {
  kind: "read" | "write" | "fixed" | "hide";
  path: string;
  source: string;
}

/** Lists the mounts of a box, parents before what is below them. */
function listMounts(box: Box): Mount[] {
  const { workDir, stateDir, runDir, home } = box;
  const write = [workDir, ...(stateDir === null ? [] : [stateDir]), runDir, home, ...box.write];
  const build = (kind: Mount["kind"]) => (path: string): Mount => ({ kind, path, source: path });
  const shown: Mount[] = [
    ...[...SYSTEM_DIRS, ...SYSTEM_LINKS, ...ETC_DIRECTORIES].filter(exists).map(build("read")),
    ...listEtc(box),
    ...[...box.read, ...box.messageFiles].map(build("read")),
    { kind: "write", path: "/tmp", source: join(runDir, "tmp") },
    ...write.map(build("write")),
    ...[...box.readOnly, ...box.fixed].map(build("fixed")),
  ];
  const places = new Map([...box.hidden.map(build("hide")), ...shown].map((mount) => [mount.path, mount]));
  const depth = ({ path }: Mount) => path === "/" ? 0 : path.split("/").length;
  return [...places.values()].sort((one, other) => depth(one) - depth(other));
}

function listEtc({ etc, read, readOnly, links }: Box): Mount[] {
  // In the directory of all boxes there is no place to mount or link another file.
  const more = [...read, ...readOnly, ...links.map(([path]) => path)];
  if (!more.some((path) => isWithin(path, "/etc"))) return [{ kind: "read", path: "/etc", source: etc }];
  return ETC_FILES.map((path): Mount => ({ kind: "read", path, source: join(etc, relative("/etc", path)) }))
    .filter(({ source }) => exists(source));
}

function buildMountArgs(mounts: readonly Mount[], { links, user }: Box): string[] {
  const tree = new MountArgs();
  tree.args.push("--proc", "/proc", "--dev", "/dev");
  const settings = user === null ? KERNEL_SETTINGS : ["/proc/sys"];
  for (const path of settings.filter(exists)) tree.args.push("--ro-bind", path, path);
  for (const folder of ["/run", "/var"]) tree.makeDirectory(folder);
  tree.args.push("--symlink", "../run", "/var/run", "--symlink", "../tmp", "/var/tmp");
  for (const mount of mounts) tree.add(mount);
  for (const [path, target] of links) tree.link(path, target);
  return tree.finish();
}

class MountArgs {
  readonly args: string[] = [];
  /** Paths of the box by what is there: something of the machine, or an empty directory of the box. */
  readonly #places = new Map<string, "machine" | "box">([["/", "box"]]);
  readonly #covers: string[] = [];
  #fd = FIRST_FD;

  add({ kind, path, source }: Mount): void {
    if (kind === "hide") return this.#hide(path);
    this.makeDirectory(dirname(path));
    const target = SYSTEM_LINKS.includes(path) ? readLink(path) : null;
    if (target !== null) this.args.push("--symlink", target, path);
    else if (kind === "read") this.args.push("--ro-bind", source, path);
    else this.args.push(kind === "write" ? "--bind-fd" : "--ro-bind-fd", `${this.#fd++}`, path);
    // Places in /tmp need the same parents as elsewhere, and nothing of the machine's /etc is there to hide.
    this.#places.set(path, ["/tmp", "/etc"].includes(path) ? "box" : "machine");
  }

  link(path: string, target: string): void {
    if (this.#findOwner(path) === "machine") return;
    this.makeDirectory(dirname(path));
    this.args.push("--symlink", target, path);
  }

  /** Without this, bubblewrap makes parents that only their owner can enter. */
  makeDirectory(path: string): void {
    if (this.#places.has(path) || this.#findOwner(path) === "machine") return;
    this.makeDirectory(dirname(path));
    // In /tmp an agent may have put a link, which bubblewrap follows: without a separate file system, it would make the directories below
    // where the link leads, as root.
    if (dirname(path) === "/tmp") this.#addEmpty(path);
    else this.args.push("--perms", "0755", "--dir", path);
    this.#places.set(path, "box");
  }

  finish(): string[] {
    return [...this.args, ...[...this.#covers, "/"].flatMap((path) => ["--remount-ro", path])];
  }

  #hide(path: string): void {
    if (this.#findOwner(path) === "box" || !exists(path)) return;
    if (isDirectory(path)) {
      this.#addEmpty(path);
      this.#places.set(path, "box");
    } else this.args.push("--ro-bind", "/dev/null", path);
  }

  #addEmpty(path: string): void {
    this.args.push("--perms", "0755", "--tmpfs", path);
    this.#covers.push(path);
  }

  /** Finds what the nearest known parent is. */
  #findOwner(path: string): "machine" | "box" {
    return this.#places.get(path) ?? this.#findOwner(dirname(path));
  }
}

function isDirectory(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

function readLink(path: string): string | null {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return null;
  }
}

const STDERR_MAX_BYTES = 4_096;

/** Reads the first output of a box: whether its program has started, and why not. */
export class BoxStart {
  #missing: Uint8Array = new TextEncoder().encode(BOX_STARTED);
  #stderr: Uint8Array = new Uint8Array();

  get isComplete(): boolean {
    return this.#missing.length === 0;
  }

  /** The start of stderr, as long as the program has not started. */
  get stderr(): string {
    return new TextDecoder().decode(this.#stderr);
  }

  /** Returns the part of stdout that the program itself wrote. */
  readStdout(chunk: Uint8Array): Uint8Array {
    const length = Math.min(this.#missing.length, chunk.length);
    this.#missing = this.#missing.subarray(length);
    return chunk.subarray(length);
  }

  readStderr(chunk: Uint8Array): void {
    if (this.isComplete || this.#stderr.length >= STDERR_MAX_BYTES) return;
    this.#stderr = concatBytes([this.#stderr, chunk]).slice(0, STDERR_MAX_BYTES);
  }
}
