import { join } from "node:path";
import type { Plugin } from "rolldown";
import { buildConsole, type BuiltConsole } from "./console.ts";
import { ROOT } from "./lock.ts";

/** A console that goes along: its files by their names in the bundle. */
export interface PackedConsole {
  files: Map<string, Uint8Array>;
  modules: string[];
}

/** Bundles the console for the executable. */
export async function packConsole(): Promise<{ packed: PackedConsole; plugin: Plugin }> {
  const { files, modules } = await buildConsole();
  const packed = new Map([...files].map(([name, { bytes }]) => [packedName(name), bytes]));
  return { packed: { files: packed, modules }, plugin: consolePlugin(files) };
}

/** Puts the finished files in the place of src/boot/console.ts, which bundles them from source. */
function consolePlugin(files: BuiltConsole["files"]): Plugin {
  return {
    name: "console",
    load(id) {
      if (id !== join(ROOT, "src/boot/console.ts")) return null;
      const entries = [...files].map(([name, { type }]) =>
        `[${JSON.stringify(name)}, { type: ${JSON.stringify(type)}, read: () => Deno.readFile(` +
        `new URL("./${packedName(name)}", import.meta.url)) }]`
      );
      return `const FILES = new Map([\n${entries.join(",\n")}\n]);\n` +
        "export function openConsole() {\n  return Promise.resolve(FILES);\n}\n";
    },
  };
}

function packedName(name: string): string {
  return `console-${name.replace("assets/", "")}.gz`;
}
