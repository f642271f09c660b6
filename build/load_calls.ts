import { relative } from "node:path";
import type { Plugin } from "rolldown";
import { ROOT } from "./lock.ts";

const CALL = /\bload<typeof import\("[^"]+"\)>\(\s*("[^"]+"),\s*import\.meta\.url,?\s*\)/g;

// Output of build/assets.ts.
const PACKED_ASSET = /openPackedAsset\(new URL\("[^"]+", import\.meta\.url\)\)/g;
// Modules that may use their own path: load() itself, which no bundle contains, and modules that only run from source.
const KNOWS_ITS_PLACE = [
  "src/base/lazy_import.ts",
  "src/boot/shim.ts",
  "src/boot/console.ts",
  "src/base/asset.ts",
];

/**
 * Turns each load() call back into an import (decision 0005): in one bundle an unused import costs nothing. Throws Error for
 * code that would read a file of the source tree at run time.
 */
export function createLoadCallsPlugin(): Plugin {
  return {
    name: "load-calls",
    transform(code, id) {
      const file = relative(ROOT, id);
      if (!/^(main\.ts|(src|cli)\/.*\.ts)$/.test(file)) return null;
      const plain = code.replace(CALL, "import($1)");
      const left = /\bload<|import\.meta\b/.exec(plain.replaceAll(PACKED_ASSET, ""));
      if (left !== null && !KNOWS_ITS_PLACE.includes(file)) {
        throw new Error(
          `${file}: ${
            left[0]
          } cannot travel in one file; name the module in a load() call, or the file in an openAsset() call`,
        );
      }
      return { code: plain };
    },
  };
}
