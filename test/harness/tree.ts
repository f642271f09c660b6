import { join, relative } from "node:path";

/** The root of the project. */
export const ROOT = new URL("../../", import.meta.url).pathname.replace(/\/$/, "");

/** Every TypeScript file below the given folders, as paths from the root. */
export function sourceFiles(...folders: string[]): string[] {
  return folders.flatMap((folder) => walk(join(ROOT, folder))).sort();
}

function walk(path: string): string[] {
  const info = Deno.statSync(path);
  if (info.isFile) return path.endsWith(".ts") ? [relative(ROOT, path)] : [];
  return [...Deno.readDirSync(path)].flatMap((entry) => walk(join(path, entry.name)));
}

/** The text of a file of the project. */
export function textOf(path: string): string {
  return Deno.readTextFileSync(join(ROOT, path));
}

/** One import: who, what, and whether it is for types only or at need. */
export interface Import {
  from: string;
  to: string;
  typeOnly: boolean;
  dynamic: boolean;
}

/** Every import between files of the project and to packages, as `deno info` sees them from main.ts. */
export async function projectImports(): Promise<{ files: string[]; imports: Import[] }> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "main.ts"],
    cwd: ROOT,
    stderr: "null",
  }).output();
  const graph = JSON.parse(new TextDecoder().decode(stdout)) as Graph;
  const local = (specifier: string) => relative(ROOT, specifier.replace(/^file:\/\//, ""));
  const files = graph.modules.map((module) => module.specifier).filter((one) => one.startsWith("file:")).map(
    local,
  );
  const imports = graph.modules.flatMap((module) =>
    (module.dependencies ?? []).map((dependency) => {
      const target = dependency.code?.specifier ?? dependency.type?.specifier ?? dependency.specifier;
      return {
        from: local(module.specifier),
        to: target.startsWith("file:") ? local(target) : dependency.specifier,
        typeOnly: dependency.code === undefined,
        dynamic: dependency.isDynamic ?? false,
      };
    })
  );
  return { files: files.filter((file) => !file.startsWith("node_modules")), imports };
}

interface Graph {
  modules: {
    specifier: string;
    dependencies?: {
      specifier: string;
      code?: { specifier?: string };
      type?: { specifier?: string };
      isDynamic?: boolean;
    }[];
  }[];
}
