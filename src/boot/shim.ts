import { exists } from "../base/paths.ts";
import { quoteShellWord } from "../base/shell.ts";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgramFiles, type ProgramFiles } from "../engine/process/program_files.ts";

/** Installs this program as `svc` in the first directory of every agent's PATH, so that agents use the version of the server (contract 4.8). */
export async function installShim(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o755 });
  // The service's umask hides new directories from the user of a box.
  await Deno.chmod(folder, 0o755);
  const path = join(folder, "svc");
  const fresh = `${path}.new`;
  await Deno.remove(fresh).catch(() => {});
  if (Deno.build.standalone) {
    await Deno.symlink(Deno.execPath(), fresh);
  } else {
    await Deno.writeTextFile(fresh, `#!/bin/sh\n${buildSourceCommand()} "$@"\n`, { mode: 0o755 });
    await Deno.chmod(fresh, 0o755);
  }
  await Deno.rename(fresh, path);
}

/** Finds the files that `svc` consists of, so that agents in a box can call it. */
export function findOwnProgram(): ProgramFiles {
  const files = findProgramFiles(Deno.execPath(), Deno.env.get("PATH") ?? "");
  if (Deno.build.standalone) return files;
  const folder = dirname(findMainPath());
  const parts = SOURCE_PARTS.map((name) => join(folder, name));
  const cache = findCache();
  return { ...files, read: [...files.read, ...[...parts, ...(cache ? [cache] : [])].filter(exists)] };
}

const SOURCE_PARTS = ["main.ts", "deno.json", "deno.lock", "src", "cli", "console/deno.json", "node_modules"];

function buildSourceCommand(): string {
  const cache = findCache();
  const setting = cache ? `DENO_DIR=${quoteShellWord(cache)} ` : "";
  return `${setting}DENO_NO_UPDATE_CHECK=1 exec ${quoteShellWord(Deno.execPath())} run -A --quiet ${
    quoteShellWord(findMainPath())
  }`;
}

// If an agent has another home directory, Deno would download every package again.
function findCache(): string | undefined {
  const { DENO_DIR, XDG_CACHE_HOME, HOME } = Deno.env.toObject();
  const caches = XDG_CACHE_HOME ??
    (HOME && join(HOME, Deno.build.os === "darwin" ? "Library/Caches" : ".cache"));
  return DENO_DIR ?? (caches && join(caches, "deno"));
}

function findMainPath(): string {
  return fileURLToPath(new URL("../../main.ts", import.meta.url));
}
