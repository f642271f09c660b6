import { dirname, join, relative } from "node:path";

export const ROOT = new URL("../../../", import.meta.url).pathname.replace(/\/$/, "");

/** Lists every TypeScript file below the given folders, as paths from the root. */
export function listSourceFiles(...folders: string[]): string[] {
  return folders.flatMap((folder) => walk(join(ROOT, folder))).sort();
}

function walk(path: string): string[] {
  const info = Deno.statSync(path);
  if (info.isFile) return /\.tsx?$/.test(path) ? [relative(ROOT, path)] : [];
  return [...Deno.readDirSync(path)].flatMap((entry) => walk(join(path, entry.name)));
}

/** Lists every page below docs/, as paths from the root. */
export function listDocuments(folder = "docs"): string[] {
  return [...Deno.readDirSync(join(ROOT, folder))].flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) return listDocuments(path);
    return path.endsWith(".md") ? [path] : [];
  }).sort();
}

export function readText(path: string): string {
  return Deno.readTextFileSync(join(ROOT, path));
}

/** An import, and whether it is for types only or dynamic. */
interface Import {
  from: string;
  to: string;
  typeOnly: boolean;
  dynamic: boolean;
}

/**
 * Lists modules that load() imports on demand, by importing file. `deno info` does not report these imports.
 */
function listLoadedModules(): { from: string; to: string }[] {
  return listSourceFiles("main.ts", "src", "cli").flatMap((from) =>
    [...readText(from).matchAll(/typeof import\("(\.[^"]+)"\)/g)].map(([, to = ""]) => ({
      from,
      to: join(dirname(from), to),
    }))
  );
}

/**
 * Lists every import between files of the project and to packages, from main.ts and modules loaded on demand.
 */
export async function listProjectImports(): Promise<{ files: string[]; imports: Import[] }> {
  const loaded = listLoadedModules();
  const entry = join(ROOT, ".cache", "house_entry.ts");
  Deno.mkdirSync(dirname(entry), { recursive: true });
  const roots = ["main.ts", ...new Set(loaded.map(({ to }) => to))];
  Deno.writeTextFileSync(entry, roots.map((root) => `import "../${root}";\n`).join(""));
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", entry],
    cwd: ROOT,
    stderr: "null",
  }).output();
  const graph = JSON.parse(new TextDecoder().decode(stdout)) as Graph;
  const local = (specifier: string) => relative(ROOT, specifier.replace(/^file:\/\//, ""));
  const modules = graph.modules.filter((module) => local(module.specifier) !== relative(ROOT, entry));
  const files = modules.map((module) => module.specifier).filter((one) => one.startsWith("file:")).map(local);
  const imports = modules.flatMap((module) =>
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
  const atNeed = loaded.map((one) => ({ ...one, typeOnly: false, dynamic: true }));
  return {
    files: files.filter((file) => !file.startsWith("node_modules")),
    imports: [...imports, ...atNeed],
  };
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
