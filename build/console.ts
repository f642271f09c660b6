import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import type { ConsoleFiles } from "../src/http/console.ts";
import { ROOT } from "./lock.ts";

/** The console as it is served. */
export interface BuiltConsole {
  /** Compressed by gzip, with the type of what is inside, by their names below /console/. */
  files: Map<string, { type: string; bytes: Uint8Array<ArrayBuffer> }>;
  /** What went in, as absolute paths. */
  modules: string[];
}

const HOME = join(ROOT, "console");
const STYLES = ["tokens", "base", "layout", "parts", "pages"];
// One file for what pages share: each file more is asked for, and what it imports after that. Not what is large and of a few pages.
const SHARED = /\/console\/(live|parts)\/(?!ansi|chart|markdown)|\/lucide-preact\//;
const TYPES: Record<string, string> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  webmanifest: "application/manifest+json",
};

/**
 * Bundles the console into its page, scripts, style and icons; everything but the page and the manifest has a hash in its
 * name (contract 17). The same source gives the same bytes (decision 0027).
 */
export async function buildConsole(): Promise<BuiltConsole> {
  const files: BuiltConsole["files"] = new Map();
  const add = (name: string, content: string | Uint8Array) => {
    const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
    files.set(name, { type, bytes: new Uint8Array(gzipSync(content, { level: 9 })) });
    return `/console/${name}`;
  };
  const addHashed = (name: string, content: string | Uint8Array) => {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 8);
    return add(`assets/${name.replace(/(\.\w+)$/, `-${hash}$1`)}`, content);
  };
  const { chunks, modules } = await bundleScripts();
  for (const { fileName, code } of chunks) add(fileName, code);
  const style = addHashed("console.css", styleSheet());
  const icon = addHashed("icon.svg", await Deno.readFile(join(HOME, "style/icon.svg")));
  const picture = addHashed("icon.png", await Deno.readFile(join(HOME, "style/icon.png")));
  add("manifest.webmanifest", manifest(icon, picture));
  const entry = chunks.find((chunk) => chunk.isEntry);
  const scripts = [entry?.fileName ?? "", ...entry?.imports ?? []].map((name) => `/console/${name}`);
  add("index.html", page({ scripts, style, icon, picture }));
  return { files, modules };
}

async function bundleScripts() {
  const build = await rolldown({
    cwd: ROOT,
    input: { main: "console/main.tsx" },
    platform: "browser",
    transform: {
      jsx: { runtime: "automatic", importSource: "preact" },
      target: "es2022",
      define: { "process.env.NODE_ENV": '"production"' },
    },
    onLog(level, log, report) {
      if (level === "warn") report("error", log);
    },
  });
  const names = "assets/[name]-[hash].js";
  const { output } = await build.generate({
    format: "esm",
    minify: true,
    entryFileNames: names,
    chunkFileNames: names,
    codeSplitting: { groups: [{ name: "shared", test: SHARED, minShareCount: 2 }] },
  });
  await build.close();
  const chunks = output.filter((file) => file.type === "chunk");
  return { chunks, modules: chunks.flatMap((chunk) => chunk.moduleIds) };
}

function styleSheet(): string {
  const chart = createRequire(join(HOME, "main.tsx")).resolve("uplot/dist/uPlot.min.css");
  const own = STYLES.map((name) => join(HOME, "style", `${name}.css`));
  return [...own, chart].map((path) => Deno.readTextFileSync(path)).join("\n");
}

function manifest(icon: string, picture: string): string {
  return JSON.stringify({
    name: "svc console",
    short_name: "svc",
    start_url: "/",
    scope: "/",
    display: "standalone",
    background_color: "#faf9f7",
    theme_color: "#faf9f7",
    icons: [
      { src: icon, sizes: "any", type: "image/svg+xml", purpose: "any" },
      { src: picture, sizes: "512x512", type: "image/png", purpose: "any maskable" },
    ],
  });
}

function page(part: { scripts: string[]; style: string; icon: string; picture: string }): string {
  const [entry = "", ...imports] = part.scripts;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" media="(prefers-color-scheme: light)" content="#faf9f7">
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="#16181b">
<title>svc</title>
<link rel="icon" href="${part.icon}">
<link rel="apple-touch-icon" href="${part.picture}">
<link rel="manifest" href="/console/manifest.webmanifest">
<link rel="stylesheet" href="${part.style}">
${
    imports.map((name) => `<link rel="modulepreload" href="${name}">\n`).join("")
  }<script type="module" src="${entry}"></script>
</head>
<body>
<div id="app"><p class="loading" role="status">Loading</p></div>
<noscript>The console needs JavaScript. Everything it does is also in <code>svc ctl</code>, and at <a href="/docs">/docs</a>.</noscript>
</body>
</html>
`;
}

let built: { newest: number; files: Promise<ConsoleFiles> } | null = null;

/** The console from source: bundled when it is first asked for, and again when a source has changed. */
export async function sourceConsole(): Promise<ConsoleFiles> {
  const newest = newestChange(HOME);
  if (built === null || built.newest !== newest) built = { newest, files: inMemory() };
  try {
    return await built.files;
  } catch (error) {
    built = null;
    throw error;
  }
}

async function inMemory(): Promise<ConsoleFiles> {
  const { files } = await buildConsole();
  return new Map(
    [...files].map(([name, { type, bytes }]) => [name, { type, read: () => Promise.resolve(bytes) }]),
  );
}

function newestChange(folder: string): number {
  return Math.max(
    0,
    ...[...Deno.readDirSync(folder)].map((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory ? newestChange(path) : Deno.statSync(path).mtime?.getTime() ?? 0;
    }),
  );
}
