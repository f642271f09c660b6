import { quoteShellWord } from "../base/shell.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Installs this program as `svc` in the first directory of every agent's PATH, so that agents use the version of the server (contract 4.8). */
export async function installShim(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o755 });
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

// If an agent has another home directory, Deno would download every package again.
function buildSourceCommand(): string {
  const { DENO_DIR, XDG_CACHE_HOME, HOME } = Deno.env.toObject();
  const caches = XDG_CACHE_HOME ??
    (HOME && join(HOME, Deno.build.os === "darwin" ? "Library/Caches" : ".cache"));
  const cache = DENO_DIR ?? (caches && join(caches, "deno"));
  const setting = cache ? `DENO_DIR=${quoteShellWord(cache)} ` : "";
  return `${setting}DENO_NO_UPDATE_CHECK=1 exec ${quoteShellWord(Deno.execPath())} run -A --quiet ${
    quoteShellWord(findMainPath())
  }`;
}

function findMainPath(): string {
  return fileURLToPath(new URL("../../main.ts", import.meta.url));
}
