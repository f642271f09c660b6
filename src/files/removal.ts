import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { HAS_DESCRIPTOR_PATHS } from "../base/files/open_directory.ts";
import { removeEntry } from "../base/files/tree_removal.ts";
import { isWithin, resolveLinks } from "../base/paths.ts";

/** A file system entry, as it was when its removal was decided. */
export interface Removal {
  parent: string;
  name: string;
  dev: number;
  ino: number;
  isDirectory: boolean;
}

/** The entry or a parent directory was replaced, so nothing was removed. */
export class ReplacedError extends Error {}

/** Identifies the entry at a path without following a symbolic link. Returns null for a missing entry. */
export function planRemoval(path: string): Removal | null {
  const parent = resolveLinks(dirname(path));
  const name = basename(path);
  try {
    const { dev, ino, isDirectory } = Deno.lstatSync(join(parent, name));
    return { parent, name, dev, ino: ino ?? 0, isDirectory };
  } catch {
    return null;
  }
}

/**
 * Removes exactly the planned entry with its contents. The open parent directory keeps another entry from taking its
 * place. Throws ReplacedError when the path leads to another entry.
 */
export async function removePlanned(removal: Removal): Promise<void> {
  const { name, isDirectory } = removal;
  const descriptor = openParent(removal);
  try {
    const opened = getOpenPath(descriptor);
    if (opened !== null && Deno.readLinkSync(opened) !== removal.parent) throw buildReplaced(removal);
    const path = join(opened ?? removal.parent, name);
    const info = Deno.lstatSync(path);
    if (info.dev !== removal.dev || info.ino !== removal.ino) throw buildReplaced(removal);
    if (isDirectory) await removeEntry({ address: opened ?? removal.parent, path: removal.parent }, name);
    else await Deno.remove(path);
  } finally {
    closeSync(descriptor);
  }
}

function openParent(removal: Removal): number {
  try {
    return openSync(removal.parent, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    throw code === "ELOOP" || code === "ENOTDIR" || code === "ENOENT" ? buildReplaced(removal) : error;
  }
}

// Without paths of descriptors, the path itself has to do.
function getOpenPath(descriptor: number): string | null {
  return HAS_DESCRIPTOR_PATHS ? `/proc/self/fd/${descriptor}` : null;
}

function buildReplaced({ parent, name }: Removal): Error {
  return new ReplacedError(`${join(parent, name)} was replaced by something else in the meantime`);
}

/** Lists mount points at or below a real path, including bind mounts. Linux only. */
export function listMounts(path: string, mountinfo: string = readMountinfo()): string[] {
  return mountinfo.split("\n")
    .map((line) => unescapeMount(line.split(" ")[4] ?? ""))
    .filter((point) => point !== "" && isWithin(point, path));
}

function readMountinfo(): string {
  try {
    return Deno.readTextFileSync("/proc/self/mountinfo");
  } catch {
    return "";
  }
}

// The kernel writes blanks, tabs, line feeds and backslashes in octal.
function unescapeMount(text: string): string {
  const bytes: number[] = [];
  const source = new TextEncoder().encode(text);
  for (let at = 0; at < source.length; at++) {
    const octal = source[at] === 0x5c ? String.fromCharCode(...source.slice(at + 1, at + 4)) : "";
    if (/^[0-7]{3}$/.test(octal)) at += 3;
    bytes.push(/^[0-7]{3}$/.test(octal) ? parseInt(octal, 8) : source[at] ?? 0);
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

const STICKY = 0o1000;
const OTHERS_WRITE = 0o002;
const GROUP_WRITE = 0o020;

/**
 * Finds the first directory from `/` down to `parent` in which another user could replace an entry, or null. For root a
 * group with write permission counts, too, because root also deletes other users' files.
 */
export function findReplaceable(parent: string): string | null {
  const uid = Deno.uid();
  const writable = uid === 0 ? OTHERS_WRITE | GROUP_WRITE : OTHERS_WRITE;
  const chain = [parent];
  while (dirname(chain[0] ?? "/") !== chain[0]) chain.unshift(dirname(chain[0] ?? "/"));
  for (const directory of chain) {
    const { mode, uid: owner } = Deno.statSync(directory);
    const foreign = owner !== 0 && owner !== uid;
    const open = ((mode ?? 0) & writable) !== 0 && ((mode ?? 0) & STICKY) === 0;
    if (foreign || open) return directory;
  }
  return null;
}
