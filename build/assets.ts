import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "rolldown";
import { ROOT } from "./lock.ts";

/** A package's file that the executable contains unchanged. */
export interface Asset {
  /** Source path, which shows the package. */
  path: string;
  /** Name in the bundle. */
  name: string;
  /** Compressed: Deno reads embedded files at every start, and `ctl` needs none of them. */
  bytes: Uint8Array;
}

const CALL = /\bopenAsset\(\s*("[^"]+"),\s*import\.meta\.url,?\s*\)/g;

/** Collects the files that openAsset() calls name, and makes the calls open the embedded copies. */
export function createAssetsPlugin(found: Map<string, Asset>): Plugin {
  return {
    name: "assets",
    transform(code, id) {
      if (
        !id.startsWith(join(ROOT, "src/")) || !code.includes("openAsset(") || id.endsWith("src/base/asset.ts")
      ) {
        return null;
      }
      const packed = code.replace(CALL, (_call, name: string) => {
        const asset = packAsset(JSON.parse(name));
        found.set(asset.name, asset);
        return `openPackedAsset(new URL("./${asset.name}", import.meta.url))`;
      });
      return { code: packed.replace(/import \{ openAsset \}/, "import { openPackedAsset }") };
    },
  };
}

function packAsset(name: string): Asset {
  const path = createRequire(join(ROOT, "main.ts")).resolve(name);
  const bytes = gzipSync(Deno.readFileSync(path), { level: 9 });
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 8);
  return { path, name: `${basename(path)}-${hash}.gz`, bytes };
}
