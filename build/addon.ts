import { createHash } from "node:crypto";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "rolldown";
import { checkAddon } from "./addon_sums.ts";
import { type Locked, readLock, ROOT } from "./lock.ts";
import type { Target } from "./target.ts";

/** libSQL's addon for one target, compressed for embedding. */
export interface Addon {
  /** The source package. */
  locked: Locked;
  bytes: Uint8Array;
  /** Name of the unpacked file, with a hash of its contents. */
  name: string;
}

/** File with the addon, next to the bundle. */
export const PACKED = "libsql.node.gz";

const VIRTUAL = "svc:libsql-addon";

/**
 * Reads the addon of a target: from node_modules for this machine's kind, else through a separate Deno install. Throws Error
 * unless its hash matches build/addon_sums.ts (reliability SUP-2).
 */
export async function readAddon(target: Target): Promise<Addon> {
  const locked = (await readLock()).get(target.addon)?.[0];
  if (locked === undefined) {
    throw new Error(`Cannot build for ${target.name}: deno.lock has no ${target.addon}`);
  }
  const folder = `${locked.name.replace("/", "+")}@${locked.version}`;
  const installed = join(ROOT, "node_modules", ".deno", folder, "node_modules", locked.name, "index.node");
  const plain = await Deno.readFile(installed).catch(() => fetchAddon(locked));
  const hash = createHash("sha256").update(plain).digest("hex");
  checkAddon(locked.name, locked.version, hash);
  return { locked, bytes: gzipSync(plain, { level: 9 }), name: `libsql-${hash.slice(0, 16)}.node` };
}

async function fetchAddon(locked: Locked): Promise<Uint8Array> {
  const folder = await Deno.makeTempDir({ prefix: "svc-addon-" });
  try {
    await Deno.writeTextFile(
      join(folder, "package.json"),
      JSON.stringify({ dependencies: { [locked.name]: locked.version } }),
    );
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["install", "--quiet"],
      cwd: folder,
    }).output();
    if (!success) {
      throw new Error(
        `Cannot get ${locked.name}@${locked.version}: ${new TextDecoder().decode(stderr).trim()}`,
      );
    }
    const got = (await readLock(join(folder, "deno.lock"))).get(locked.name)?.[0];
    if (got === undefined || got.integrity !== locked.integrity) {
      throw new Error(`Cannot use ${locked.name}@${locked.version}: it is not the one that deno.lock names`);
    }
    return await Deno.readFile(join(folder, "node_modules", locked.name, "index.node"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Replaces libsql's own search for its addon. The search looks for a package at run time, so the bundler cannot follow it. */
export function createAddonPlugin(addon: Addon): Plugin {
  return {
    name: "libsql-addon",
    resolveId: (id) => id === VIRTUAL ? id : null,
    load: (id) =>
      id === VIRTUAL
        ? `import { loadPackedAddon } from ${JSON.stringify(join(ROOT, "src/store/db/addon.ts"))};
export const addon = loadPackedAddon(new URL("./${PACKED}", import.meta.url), "${addon.name}");`
        : null,
    transform(code, id) {
      if (!/\/node_modules\/libsql\/(index|promise)\.js$/.test(id)) return null;
      const search =
        /const \{ load, currentTarget \} = require[\s\S]*?function requireNative\(\) \{[\s\S]*?\n\}/;
      if (!search.test(code)) throw new Error(`${id} looks for its addon in a new way; adapt build/addon.ts`);
      return { code: code.replace(search, `const requireNative = () => require("${VIRTUAL}").addon;`) };
    },
  };
}
