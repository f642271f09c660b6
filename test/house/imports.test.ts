import { describe, expect, it } from "vitest";
import { projectImports, sourceFiles } from "../harness/tree.ts";

const GROUND = [
  "archive",
  "asset",
  "bytes",
  "clock",
  "config",
  "config_file",
  "config_show",
  "config_yaml",
  "digest",
  "fault",
  "fault_plan",
  "id",
  "load",
  "log",
  "paths",
  "token",
  "token_verify",
  "version",
  "wake",
];

/** What each layer may import beside itself: layers, or single files of one. */
const MAY: Record<string, string[]> = {
  domain: [],
  store: ["domain", "ground"],
  engine: ["domain", "ground"],
  platform: ["domain", "ground"],
  pipeline: ["store", "engine", "platform", "domain", "ground"],
  api: [
    "store",
    "engine/catalog",
    "engine/arguments",
    "engine/isolation",
    "platform/uploads",
    "domain",
    "ground",
  ],
  http: ["api", "store", "engine/catalog", "platform/uploads", "domain", "ground"],
  ground: ["domain", "ground"],
  cli: ["config", "config_show", "config_file", "load", "token", "version", "domain/error", "domain/name"],
  // The composition root sees everything.
  root: ["api", "http", "pipeline", "store", "engine", "platform", "domain", "ground", "root"],
  main: [
    "src/serve.ts",
    "src/load.ts",
    "src/version.ts",
    "src/restore.ts",
    "cli/ctl.ts",
    "cli/restore.ts",
    "cli/io.ts",
    "cli/service.ts",
    "cli/groups.ts",
    "cli/health.ts",
    "cli/completion.ts",
  ],
};

/** Packages that only some files may use: what they are for is decided in one place. */
const PACKAGES: Record<string, RegExp> = {
  "@libsql/client": /^src\/store\/remote_driver\.ts$/,
  "libsql": /^src\/store\/local_driver\.ts$/,
  "modern-tar": /^src\/archive\.ts$/,
  "croner": /^src\/domain\/cron\.ts$/,
  "commander": /^cli\//,
  "@modelcontextprotocol/server": /^src\/http\/mcp\.ts$/,
  "@bomb.sh/tab": /^cli\/completion\.ts$/,
  "hono": /^src\/http\//,
  "@hono/zod-openapi": /^src\/http\/openapi\.ts$/,
  "@fastify/busboy": /^src\/http\/upload\.ts$/,
  "uuid": /^src\/id\.ts$/,
  "yaml": /^src\/config(_yaml|_file)?\.ts$/,
  "@logtape/logtape": /^src\/log\.ts$/,
};

function layerOf(path: string): string {
  const [top = "", second = ""] = path.split("/");
  if (path === "main.ts") return "main";
  if (top === "cli") return "cli";
  if (top !== "src") return top;
  if (!second.endsWith(".ts")) return second;
  return GROUND.includes(second.replace(/\.ts$/, "")) ? "ground" : "root";
}

function allowed(from: string, to: string, typeOnly: boolean): boolean {
  const layer = layerOf(from);
  const target = layerOf(to);
  const may = MAY[layer] ?? [];
  if (layer === "main") return may.includes(to);
  if (layer === "cli") {
    if (target === "cli") return true;
    if (typeOnly && to === "src/http/app.ts") return true;
    return may.includes(to.replace(/^src\//, "").replace(/\.ts$/, ""));
  }
  if (layer === target || may.includes(target)) return true;
  return may.includes(to.replace(/^src\//, "").replace(/\.ts$/, ""));
}

describe("imports (house)", async () => {
  const { files, imports } = await projectImports();

  it("go only where the house allows", () => {
    const wrong = imports
      .filter(({ to }) => /^(src\/|cli\/|main\.ts)/.test(to))
      .filter(({ from, to, typeOnly }) => !allowed(from, to, typeOnly))
      .map(({ from, to }) => `${from} -> ${to}`);
    expect(wrong).toEqual([]);
  });

  it("let domain use zod and croner only", () => {
    const packages = imports.filter(({ from, to }) =>
      from.startsWith("src/domain/") && !to.startsWith("src/")
    );
    expect(packages.filter(({ to }) => to !== "zod" && to !== "croner")).toEqual([]);
  });

  it("keep each package in its place", () => {
    const wrong = imports.filter(({ from, to, typeOnly }) => {
      const name = Object.keys(PACKAGES).find((known) => to === known || to.startsWith(`${known}/`));
      return name !== undefined && !typeOnly && !PACKAGES[name]?.test(from);
    });
    expect(wrong).toEqual([]);
  });

  it("make main.ts load everything at need only", () => {
    const eager = imports.filter(({ from, to, typeOnly, dynamic }) =>
      from === "main.ts" && !typeOnly && !dynamic && !/^src\/(version|load)\.ts$/.test(to)
    );
    expect(eager).toEqual([]);
  });

  it("reach every file: none is dead", () => {
    expect(sourceFiles("src", "cli").filter((file) => !files.includes(file))).toEqual([]);
  });

  it("have no cycles", () => {
    const edges = new Map<string, string[]>();
    for (const { from, to, typeOnly, dynamic } of imports) {
      if (!typeOnly && !dynamic) edges.set(from, [...edges.get(from) ?? [], to]);
    }
    expect(findCycle(edges)).toBeNull();
  });
});

function findCycle(edges: Map<string, string[]>): string[] | null {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const next of edges.get(file) ?? []) {
      const cycle = visit(next, [...path, file]);
      if (cycle !== null) return cycle;
    }
    done.add(file);
    return null;
  };
  for (const file of edges.keys()) {
    const cycle = visit(file, []);
    if (cycle !== null) return cycle;
  }
  return null;
}
