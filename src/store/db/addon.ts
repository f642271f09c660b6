import { createRequire } from "node:module";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

let addonDirectory: string | null = null;

/** Sets the private directory for libSQL's unpacked addon. Others can write to the system's temporary directory, often noexec. */
export function setAddonDirectory(folder: string): void {
  addonDirectory = folder;
}

/**
 * Loads the compressed addon of a compiled svc. The build replaces libsql's own search with this call (build/addon.ts).
 * `name` changes with the content. Falls back to a private temporary directory. Throws when both directories fail.
 */
export function loadPackedAddon(packed: URL, name: string): unknown {
  const faults: string[] = [];
  if (addonDirectory !== null) {
    try {
      return requireAddon(unpackAddon(addonDirectory, packed, name));
    } catch (error) {
      faults.push(`${addonDirectory}: ${formatFault(error)}`);
    }
  }
  try {
    const folder = Deno.makeTempDirSync({ prefix: "svc-" });
    try {
      return requireAddon(unpackAddon(folder, packed, name));
    } finally {
      // A loaded library works without its file. Windows keeps the file.
      removeIfPossible(folder);
    }
  } catch (error) {
    faults.push(`temporary directory: ${formatFault(error)}`);
  }
  throw new Error(
    `cannot load the libSQL library (${faults.join("; ")}). Make the data directory or TMPDIR writable ` +
      "and mount it without noexec",
  );
}

function unpackAddon(folder: string, packed: URL, name: string): string {
  const path = join(folder, name);
  if (isFile(path)) return path;
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const entry of Deno.readDirSync(folder)) removeIfPossible(join(folder, entry.name));
  const file = Deno.openSync(`${path}.new`, { write: true, create: true, truncate: true, mode: 0o600 });
  try {
    const bytes = gunzipSync(Deno.readFileSync(packed));
    for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    // Synced before the rename, so that a power cut cannot leave half a file under the final name.
    file.syncSync();
  } finally {
    file.close();
  }
  Deno.renameSync(`${path}.new`, path);
  return path;
}

function requireAddon(path: string): unknown {
  return createRequire(path)(path);
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

function removeIfPossible(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch {
    // A leftover file does no harm.
  }
}

function formatFault(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/ \(os error.*/, "").split(
    "\n",
  )[0] ?? "";
}
