import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import type { ConsoleFiles } from "../src/http/console.ts";
import { ROOT } from "./lock.ts";

export interface BuiltConsole {
  /** Compressed files with their media types, by their names below /console/. */
  files: Map<string, { type: string; bytes: Uint8Array<ArrayBuffer> }>;
  /** Absolute paths of the bundled modules. */
  modules: string[];
}

const HOME = join(ROOT, "console");
const STYLES = ["tokens", "base", "layout", "parts", "tables", "pages", "work"];
// Shared modules go into one file, because a browser requests every file, and its imports only after it. Large modules of a few
// pages stay separate.
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
 * Bundles the console into its page, scripts, style sheet and icons. All names except those of the page, the manifest and the
 * service worker contain a hash. The same source gives the same bytes.
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
  const style = addHashed("console.css", readStyles());
  const icon = addHashed("icon.svg", await Deno.readFile(join(HOME, "style/icon.svg")));
  const pngIcon = addHashed("icon.png", await Deno.readFile(join(HOME, "style/icon.png")));
  add("manifest.webmanifest", buildManifest(icon, pngIcon));
  const entry = chunks.find((chunk) => chunk.isEntry);
  const scripts = [entry?.fileName ?? "", ...entry?.imports ?? []].map((name) => `/console/${name}`);
  add("index.html", buildPage({ scripts, style, icon, pngIcon }));
  const offline = addHashed("offline.html", buildOfflinePage({ style, icon }));
  const worker = await bundleServiceWorker({
    OFFLINE_PAGE: offline,
    OFFLINE_FILES: [style, icon],
    ICON: pngIcon,
  });
  add("sw.js", worker.code);
  return { files, modules: [...modules, ...worker.modules] };
}

/** Bundles the service worker, whose name must not change, with these values. */
async function bundleServiceWorker(values: Record<string, string | string[]>) {
  const build = await rolldown({
    cwd: ROOT,
    input: "console/service_worker.ts",
    platform: "browser",
    transform: {
      target: "es2022",
      define: Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]),
      ),
    },
  });
  const { output: [chunk] } = await build.generate({ format: "iife", minify: true });
  await build.close();
  return { code: chunk.code, modules: chunk.moduleIds };
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

function readStyles(): string {
  const chart = createRequire(join(HOME, "main.tsx")).resolve("uplot/dist/uPlot.min.css");
  const own = STYLES.map((name) => join(HOME, "style", `${name}.css`));
  return [...own, chart].map((path) => Deno.readTextFileSync(path)).join("\n");
}

function buildManifest(icon: string, pngIcon: string): string {
  return JSON.stringify({
    name: "svc console",
    short_name: "svc",
    id: "/",
    start_url: "/console/",
    scope: "/",
    display: "standalone",
    background_color: "#faf9f7",
    theme_color: "#faf9f7",
    icons: [
      { src: icon, sizes: "any", type: "image/svg+xml", purpose: "any" },
      { src: pngIcon, sizes: "512x512", type: "image/png", purpose: "any maskable" },
    ],
  });
}

const HEAD = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<title>svc</title>`;

function buildPage(part: { scripts: string[]; style: string; icon: string; pngIcon: string }): string {
  const [entry = "", ...imports] = part.scripts;
  return `${HEAD}
<meta name="theme-color" media="(prefers-color-scheme: light)" content="#faf9f7">
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="#16181b">
<link rel="icon" href="${part.icon}">
<link rel="apple-touch-icon" href="${part.pngIcon}">
<link rel="manifest" href="/console/manifest.webmanifest">
<link rel="stylesheet" href="${part.style}">
${
    imports.map((name) => `<link rel="modulepreload" href="${name}">\n`).join("")
  }<script type="module" src="${entry}"></script>
</head>
<body>
<div id="app"><p class="loading" role="status">Loading</p></div>
<noscript>The console needs JavaScript. Without it, use <code>svc ctl</code> or the API at <a href="/docs">/docs</a>.</noscript>
</body>
</html>
`;
}

/** Builds the page that the service worker shows while the service does not respond. */
function buildOfflinePage({ style, icon }: { style: string; icon: string }): string {
  return `${HEAD}
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${style}">
</head>
<body>
<main class="login">
<div class="empty">
<h1 class="empty-title">The service does not respond.</h1>
<p>Check your connection, or whether the service is running.</p>
<p><a href="">Try again</a></p>
</div>
</main>
</body>
</html>
`;
}

let built: { newest: number; files: Promise<ConsoleFiles> } | null = null;

/** Bundles the console from source on the first request, and again after a change. */
export async function bundleConsoleFromSource(): Promise<ConsoleFiles> {
  const newest = findNewestChange(HOME);
  if (built === null || built.newest !== newest) built = { newest, files: bundleInMemory() };
  try {
    return await built.files;
  } catch (error) {
    built = null;
    throw error;
  }
}

async function bundleInMemory(): Promise<ConsoleFiles> {
  const { files } = await buildConsole();
  return new Map(
    [...files].map(([name, { type, bytes }]) => [name, { type, read: () => Promise.resolve(bytes) }]),
  );
}

function findNewestChange(folder: string): number {
  return Math.max(
    0,
    ...[...Deno.readDirSync(folder)].map((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory ? findNewestChange(path) : Deno.statSync(path).mtime?.getTime() ?? 0;
    }),
  );
}
