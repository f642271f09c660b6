import { createRequire } from "node:module";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

let keptIn: string | null = null;

/**
 * Names the directory in which a compiled svc keeps libSQL's addon unpacked. Nobody else may write there: the
 * system's temporary directory, which Deno would take, belongs to everybody and is often mounted noexec.
 */
export function keepAddonIn(folder: string): void {
  keptIn = folder;
}

/**
 * Loads an addon that travels in a compiled svc, compressed: called by the code that the build puts in the place of
 * libsql's own search (build/addon.ts). `name` changes with the content. A directory that refuses is passed over
 * for a private temporary one. Throws Error naming both when neither lets programs be loaded.
 */
export function loadPackedAddon(packed: URL, name: string): unknown {
  const faults: string[] = [];
  if (keptIn !== null) {
    try {
      return loaded(kept(keptIn, packed, name));
    } catch (error) {
      faults.push(`${keptIn}: ${words(error)}`);
    }
  }
  try {
    const folder = Deno.makeTempDirSync({ prefix: "svc-" });
    try {
      return loaded(kept(folder, packed, name));
    } finally {
      // What is loaded stays loaded without its file; Windows keeps the file.
      remove(folder);
    }
  } catch (error) {
    faults.push(`temporary directory: ${words(error)}`);
  }
  throw new Error(
    `its library cannot be loaded (${faults.join("; ")}); the data directory or TMPDIR must be writable ` +
      "and not mounted noexec",
  );
}

function kept(folder: string, packed: URL, name: string): string {
  const path = join(folder, name);
  if (isFile(path)) return path;
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const entry of Deno.readDirSync(folder)) remove(join(folder, entry.name));
  const file = Deno.openSync(`${path}.new`, { write: true, create: true, truncate: true, mode: 0o600 });
  try {
    const bytes = gunzipSync(Deno.readFileSync(packed));
    for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    // The name must never belong to half a file, not even after a power cut.
    file.syncSync();
  } finally {
    file.close();
  }
  Deno.renameSync(`${path}.new`, path);
  return path;
}

function loaded(path: string): unknown {
  return createRequire(path)(path);
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

function remove(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch {
    // A file that is left behind does no harm.
  }
}

function words(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/ \(os error.*/, "").split(
    "\n",
  )[0] ?? "";
}
