import { join } from "node:path";
import type { Plugin } from "rolldown";
import { buildConsole, type BuiltConsole } from "./console.ts";
import { ROOT } from "./lock.ts";

/** Files of the console by their names in the executable. */
export interface PackedConsole {
  files: Map<string, Uint8Array>;
  modules: string[];
}

/** Bundles the console for the executable. */
export async function packConsole(): Promise<{ packed: PackedConsole; plugin: Plugin }> {
  const { files, modules } = await buildConsole();
  const packed = new Map([...files].map(([name, { bytes }]) => [buildPackedName(name), bytes]));
  return { packed: { files: packed, modules }, plugin: createPlugin(files) };
}

/** Replaces src/boot/console.ts, which bundles from source, with the finished files. */
function createPlugin(files: BuiltConsole["files"]): Plugin {
  return {
    name: "console",
    load(id) {
      if (id !== join(ROOT, "src/boot/console.ts")) return null;
      const entries = [...files].map(([name, { type }]) =>
        `[${JSON.stringify(name)}, { type: ${JSON.stringify(type)}, read: () => Deno.readFile(` +
        `new URL("./${buildPackedName(name)}", import.meta.url)) }]`
      );
      return `const FILES = new Map([\n${entries.join(",\n")}\n]);\n` +
        "export function openConsole() {\n  return Promise.resolve(FILES);\n}\n";
    },
  };
}

function buildPackedName(name: string): string {
  return `console-${name.replace("assets/", "")}.gz`;
}
