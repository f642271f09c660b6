// Removes what agents have left, whatever they have built, and nothing outside of it (decision 0035).
import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  type Directory,
  enter,
  HAS_DESCRIPTOR_PATHS,
  nameRealPath,
  nullIfMissing,
  O_PATH,
  openDirectory,
  type Place,
} from "./open_directory.ts";

// Deeper trees are left to `rm`, which is faster there but cannot enter a directory without permissions.
const LEVELS = 64;
// How many entries are removed at the same time.
const BATCH = 16;

/** Removes a file, a link or a directory with its contents. Follows no link. Does nothing when it is missing. Throws when something stays. */
export async function removeTree({ root, path }: Place): Promise<void> {
  const open = nullIfMissing(() => openDirectory({ root, path: dirname(path) }));
  if (open === null) return;
  using parent = open;
  await removeEntry(parent, basename(path));
}

/**
 * Removes an entry of an open directory as removeTree() does. A recursive Deno.remove() would crash the service at some ten thousand levels.
 * This moves each subdirectory up to the top, so that it never goes deeper than two levels.
 */
export async function removeEntry(
  parent: Directory,
  name: string,
): Promise<void> {
  const address = join(parent.address, name);
  if (await removeOne(address) !== "kept") return;
  try {
    using top = enterForced(parent, name);
    for (let level = 0; level < LEVELS && await removeLevel(top); level++);
  } catch {
    // The attempts below decide.
  }
  if (await removeOne(address) !== "kept") return;
  await runRm(parent, name);
  // Without `recursive` this reports the reason, or that nothing is left.
  await Deno.remove(address).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw nameRealPath(error, join(parent.path, name));
  });
}

/** Removes the files of a directory, and moves the contents of its subdirectories up. Returns whether anything changed. */
async function removeLevel(top: Directory): Promise<boolean> {
  let hasChanged = false;
  await forEachEntry(top, async (name) => {
    const end = await removeOne(join(top.address, name));
    if (end === "removed" || end === "kept" && await emptyInto(top, name)) hasChanged = true;
  });
  return hasChanged;
}

async function emptyInto(top: Directory, name: string): Promise<boolean> {
  let hasChanged = false;
  try {
    using directory = enterForced(top, name);
    await forEachEntry(directory, async (child) => {
      const end = await removeOne(join(directory.address, child));
      if (end === "removed" || end === "kept" && await moveUp(top, directory, child)) hasChanged = true;
    });
  } catch {
    return hasChanged;
  }
  return await removeOne(join(top.address, name)) === "removed" || hasChanged;
}

async function moveUp(top: Directory, directory: Directory, child: string): Promise<boolean> {
  try {
    // A move to another parent needs write permission for the directory itself.
    enterForced(directory, child)[Symbol.dispose]();
    await Deno.rename(join(directory.address, child), join(top.address, crypto.randomUUID()));
    return true;
  } catch {
    return false;
  }
}

async function forEachEntry(directory: Directory, work: (name: string) => Promise<void>): Promise<void> {
  const names = (await Array.fromAsync(Deno.readDir(directory.address))).map(({ name }) => name);
  for (let at = 0; at < names.length; at += BATCH) await Promise.all(names.slice(at, at + BATCH).map(work));
}

async function removeOne(address: string): Promise<"removed" | "missing" | "kept"> {
  try {
    await Deno.remove(address);
    return "removed";
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? "missing" : "kept";
  }
}

/** Opens a directory, and takes back the permissions that an agent has removed. */
function enterForced(parent: Directory, name: string): Directory & Disposable {
  if (HAS_DESCRIPTOR_PATHS && Deno.uid() !== 0) grantOwner(join(parent.address, name));
  return enter(parent, name);
}

function grantOwner(address: string): void {
  // Changes the mode of the opened directory, never of another one that takes its name.
  const held = openSync(address, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const own = `/proc/self/fd/${held}`;
    if (((Deno.statSync(own).mode ?? 0) & 0o700) !== 0o700) Deno.chmodSync(own, 0o700);
  } finally {
    closeSync(held);
  }
}

// Deno cannot name a file whose name is not UTF-8. `rm` follows no link either, at any depth, and starts in the open directory.
async function runRm(parent: Directory, name: string): Promise<void> {
  const cwd = parent.address.replace("/proc/self/", `/proc/${Deno.pid}/`);
  const streams = { stdin: "null", stdout: "null", stderr: "null" } as const;
  await new Deno.Command("rm", { args: ["-rf", "--", name], cwd, ...streams }).output().catch(() => {});
}
