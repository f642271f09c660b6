import { shellWord } from "../base/shell.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Puts `svc` into the directory that stands first on every agent's PATH: this very program, so that an agent talks
 * to its server with the version that the server has (contract 4.8).
 */
export async function installShim(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o755 });
  const path = join(folder, "svc");
  const fresh = `${path}.new`;
  await Deno.remove(fresh).catch(() => {});
  if (Deno.build.standalone) {
    await Deno.symlink(Deno.execPath(), fresh);
  } else {
    await Deno.writeTextFile(fresh, `#!/bin/sh\n${fromSource()} "$@"\n`, { mode: 0o755 });
    await Deno.chmod(fresh, 0o755);
  }
  await Deno.rename(fresh, path);
}

// An agent may have another home directory, where Deno would download every package again.
function fromSource(): string {
  const { DENO_DIR, XDG_CACHE_HOME, HOME } = Deno.env.toObject();
  const caches = XDG_CACHE_HOME ??
    (HOME && join(HOME, Deno.build.os === "darwin" ? "Library/Caches" : ".cache"));
  const cache = DENO_DIR ?? (caches && join(caches, "deno"));
  const setting = cache ? `DENO_DIR=${shellWord(cache)} ` : "";
  return `${setting}DENO_NO_UPDATE_CHECK=1 exec ${shellWord(Deno.execPath())} run -A --quiet ${
    shellWord(mainPath())
  }`;
}

function mainPath(): string {
  return fileURLToPath(new URL("../../main.ts", import.meta.url));
}
