import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "rolldown";
import { ROOT } from "./lock.ts";

/** A file of a package that is included unchanged. */
export interface Asset {
  /** Its path, which shows its package. */
  path: string;
  /** Its name in the bundle. */
  name: string;
  /** Compressed, because embedded files are read at every start, and `ctl` needs none of them. */
  bytes: Uint8Array;
}

const CALL = /\bopenAsset\(\s*("[^"]+"),\s*import\.meta\.url,?\s*\)/g;

/** Finds the calls of openAsset(), collects the files that they name, and makes them open the embedded copy. */
export function assetsPlugin(found: Map<string, Asset>): Plugin {
  return {
    name: "assets",
    transform(code, id) {
      if (
        !id.startsWith(join(ROOT, "src/")) || !code.includes("openAsset(") || id.endsWith("src/base/asset.ts")
      ) {
        return null;
      }
      const packed = code.replace(CALL, (_call, name: string) => {
        const asset = assetOf(JSON.parse(name));
        found.set(asset.name, asset);
        return `openPackedAsset(new URL("./${asset.name}", import.meta.url))`;
      });
      return { code: packed.replace(/import \{ openAsset \}/, "import { openPackedAsset }") };
    },
  };
}

function assetOf(name: string): Asset {
  const path = createRequire(join(ROOT, "main.ts")).resolve(name);
  const bytes = gzipSync(Deno.readFileSync(path), { level: 9 });
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 8);
  return { path, name: `${basename(path)}-${hash}.gz`, bytes };
}
