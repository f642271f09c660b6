import { createHash } from "node:crypto";
import { join, relative } from "node:path";
import { type ChunkingContext, rolldown } from "rolldown";
import { type Addon, createAddonPlugin, PACKED } from "./addon.ts";
import { type Asset, createAssetsPlugin } from "./assets.ts";
import { packConsole } from "./console_plugin.ts";
import { createLoadCallsPlugin } from "./load_calls.ts";
import { type Locked, readLock, ROOT } from "./lock.ts";
import { createStampPlugin, type Stamp } from "./stamp.ts";

/** Contents of one executable. */
export interface Bundle {
  /** SHA-256 by file name. */
  files: Record<string, string>;
  /** Modules of this project, as paths from the root. */
  modules: string[];
  /** Packages as deno.lock pins them. */
  packages: Locked[];
}

export const ENTRY = "main.js";

/**
 * Bundles all modules that main.ts reaches, with the addon, into an empty `folder` (decision 0005). The same source gives the
 * same bytes (reliability SUP-4).
 */
export async function bundle(folder: string, addon: Addon, stamp: Stamp): Promise<Bundle> {
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(folder, { recursive: true });
  const assets = new Map<string, Asset>();
  const { packed, plugin: consolePlugin } = await packConsole();
  const build = await rolldown({
    cwd: ROOT,
    input: { main: "main.ts" },
    platform: "node",
    preserveEntrySignatures: "allow-extension",
    plugins: [
      consolePlugin,
      createAssetsPlugin(assets),
      createLoadCallsPlugin(),
      createStampPlugin(stamp),
      createAddonPlugin(addon),
    ],
    onLog(level, log, report) {
      // Packages import optional packages inside a try. On a busy machine rolldown warns of plugins that take long.
      if (level === "warn" && log.code !== "EVAL" && log.code !== "PLUGIN_TIMINGS") report("error", log);
    },
  });
  const { output } = await build.generate({
    format: "esm",
    chunkFileNames: "[name]-[hash].js",
    comments: { legal: true, annotation: false, jsdoc: false },
    codeSplitting: {
      groups: [{ name: createCommandLineGroup(), debugName: "ctl" }],
      includeDependenciesRecursively: false,
    },
  });
  await build.close();
  const contents = new Map<string, Uint8Array>([[PACKED, addon.bytes], ...packed.files]);
  for (const { name, bytes } of assets.values()) contents.set(name, bytes);
  const modules: string[] = [
    ...[...assets.values()].map(({ path }) => path),
    ...packed.modules,
  ];
  for (const file of output) {
    if (file.type !== "chunk") throw new Error(`Cannot build: ${file.fileName} is not code`);
    contents.set(file.fileName, new TextEncoder().encode(file.code));
    modules.push(...file.moduleIds);
  }
  if (modules.includes(join(ROOT, "src/base/lazy_import.ts"))) {
    throw new Error(
      "Cannot build: a call of load() is written in a form that build/load_calls.ts does not know",
    );
  }
  const files: Record<string, string> = {};
  const writtenAt = new Date(stamp.commitTime || 0);
  for (const name of [...contents.keys()].sort()) {
    const bytes = contents.get(name) ?? new Uint8Array();
    files[name] = createHash("sha256").update(bytes).digest("hex");
    await Deno.writeFile(join(folder, name), bytes);
    // Deno embeds file times. A fixed time makes two builds of one commit identical.
    await Deno.utime(join(folder, name), writtenAt, writtenAt);
  }
  const ours = modules.map((id) => relative(ROOT, id)).filter((file) => /^(main\.ts|src\/|cli\/)/.test(file))
    .sort();
  return {
    files,
    modules: ours,
    packages: [...await findPackages(modules), addon.locked].sort(compareNames),
  };
}

const CLI_ROOTS = ["ctl", "terminal/io", "commands/resource"].map((name) => join(ROOT, `cli/${name}.ts`));
const OTHER_ROOTS = ["main.ts", "src/boot/serve.ts", "src/boot/runner.ts"].map((name) => join(ROOT, name));

/**
 * Puts the modules of every `svc ctl` command into one file, because each file costs load time. Modules that other commands need stay
 * separate, so that those commands load nothing of `svc ctl`.
 */
function createCommandLineGroup(): (id: string, build: ChunkingContext) => string | null {
  let members: Set<string> | null = null;
  return (id, build) => {
    members ??= findReached(CLI_ROOTS, build).difference(findReached(OTHER_ROOTS, build));
    return members.has(id) ? "ctl" : null;
  };
}

/** Returns the modules that load together with the roots, without modules that load on demand. */
function findReached(roots: string[], build: ChunkingContext): Set<string> {
  const reached = new Set(roots);
  for (const id of reached) {
    for (const next of build.getModuleInfo(id)?.importedIds ?? []) reached.add(next);
  }
  return reached;
}

/** Returns the packages of modules, by their paths in node_modules. */
async function findPackages(modules: string[]): Promise<Locked[]> {
  const lock = await readLock();
  const found = new Map<string, Locked>();
  for (const id of modules) {
    const [, store = "", name = ""] =
      /\/node_modules\/\.deno\/([^/]+)\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id) ?? [];
    if (name === "") continue;
    const version = /@(\d[^_]*)/.exec(store.slice(1))?.[1] ?? "";
    const locked = lock.get(name)?.find((one) => one.version === version);
    if (locked === undefined) throw new Error(`Cannot build: deno.lock has no ${name}@${version}`);
    found.set(`${name}@${version}`, locked);
  }
  return [...found.values()];
}

function compareNames(a: Locked, b: Locked): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
