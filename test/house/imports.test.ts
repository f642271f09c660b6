import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listProjectImports, listSourceFiles, readText, ROOT } from "../harness/house/tree.ts";

/** The allowed imports of each floor besides itself: the folders of src/, and the folders next to src/. */
const MAY: Record<string, readonly string[]> = {
  base: [],
  domain: ["base"],
  config: ["engine", "platform", "domain", "base"],
  store: ["domain", "base"],
  engine: ["domain", "base"],
  files: ["domain", "base"],
  platform: ["domain", "base"],
  run: ["engine", "store", "files", "domain", "base"],
  api: ["store", "engine", "files", "platform", "domain", "base"],
  pipeline: ["run", "store", "engine", "files", "platform", "domain", "base"],
  runner: ["run", "engine", "domain", "base"],
  http: ["api", "files", "domain", "base"],
  boot: "runner http api pipeline run platform engine files store config domain base".split(" "),
  cli: ["config", "base"],
  main: ["boot", "cli", "base"],
};

const ROOMS_MAX = 17;

/** Packages that only some files may import. */
const PACKAGES: Record<string, RegExp> = {
  "@libsql/client": /^src\/store\/db\/remote_driver\.ts$/,
  "libsql": /^src\/store\/db\/(local_driver|copy)\.ts$/,
  "modern-tar": /^src\/base\/archive\.ts$/,
  "croner": /^src\/domain\/work\/cron\.ts$/,
  "commander": /^cli\//,
  "fast-string-truncated-width": /^cli\/terminal\/table\.ts$/,
  "@modelcontextprotocol/server": /^src\/http\/mcp\.ts$/,
  "hono": /^src\/http\//,
  "@hono/zod-openapi": /^src\/http\/openapi\.ts$/,
  "@fastify/busboy": /^src\/http\/upload\.ts$/,
  "uuid": /^src\/base\/id\.ts$/,
  "ws": /^src\/platform\/websocket\.ts$/,
  "yaml": /^src\/(config\/|files\/git\/skill_tree\.ts$)/,
  "@logtape/logtape": /^src\/base\/log\.ts$/,
};

// The command line shares these modules with the service. None imports zod, because the command line has to
// start fast (contract 6.9).
const DOMAIN_OF_CLI =
  /^src\/domain\/(call\/(vocabulary|error|name_key|closest|typed_command|server_description)|chat\/chat_command|work\/change_counts)\.ts$/;

const TYPES_OF_CONFIG = ["api", "run", "pipeline", "runner"];

function findRoom(path: string): string {
  const [top = "", second = ""] = path.split("/");
  if (path === "main.ts") return "main";
  return top === "src" ? second : top;
}

function isAllowed(from: string, to: string, typeOnly: boolean): boolean {
  const room = findRoom(from);
  const target = findRoom(to);
  // Floors with TYPES_OF_CONFIG know the types of the configuration; `boot` passes the values.
  if (target === "config" && typeOnly && TYPES_OF_CONFIG.includes(room)) return true;
  // The client takes its types from the routes.
  if (room === "cli" && typeOnly && to === "src/http/app.ts") return true;
  if (room === "cli" && DOMAIN_OF_CLI.test(to)) return true;
  // From source, the build bundles the console on request and returns the type that http serves.
  if (room === "build" && typeOnly && to === "src/http/console.ts") return true;
  return room === target || MAY[room]?.includes(target) === true;
}

describe("imports (architecture, Folders)", async () => {
  const { files, imports } = await listProjectImports();

  it("go only where the architecture allows", () => {
    const wrong = imports
      .filter(({ to }) => /^(src\/|cli\/|main\.ts)/.test(to))
      .filter(({ from, to, typeOnly }) => !isAllowed(from, to, typeOnly))
      .map(({ from, to }) => `${from} -> ${to}`);
    expect(wrong).toEqual([]);
  });

  it("match the table in docs/explanation/architecture.md", () => {
    const rows = [
      ...readText("docs/explanation/architecture.md").matchAll(
        /^\| `(?:src\/)?(\w+)(?:\/|\.ts)` \| .* \| ([^|;]*)/gm,
      ),
    ];
    const said = rows.filter(([, room = ""]) => room !== "boot").map(([, room = "", rooms = ""]) => [
      room,
      [...rooms.matchAll(/`(\w+)`/g)].map(([, one = ""]) => one).sort(),
    ]);
    const { boot: _all, ...rest } = MAY;
    expect(Object.fromEntries(said)).toEqual(
      Object.fromEntries(Object.entries(rest).map(([room, rooms]) => [room, [...rooms].sort()])),
    );
  });

  it("come from known floors, and src/ has no loose files at its top", () => {
    const top = [...Deno.readDirSync(join(ROOT, "src"))];
    expect(top.filter((entry) => !entry.isDirectory || !(entry.name in MAY))).toEqual([]);
    expect(top.length).toBeLessThanOrEqual(ROOMS_MAX);
  });

  it("of domain are zod and croner only", () => {
    const packages = imports.filter(({ from, to }) =>
      from.startsWith("src/domain/") && !to.startsWith("src/")
    );
    expect(packages.filter(({ to }) => to !== "zod" && to !== "croner")).toEqual([]);
  });

  it("of a package are in its files only", () => {
    const wrong = imports.filter(({ from, to, typeOnly }) => {
      const name = Object.keys(PACKAGES).find((known) => to === known || to.startsWith(`${known}/`));
      return name !== undefined && !typeOnly && !PACKAGES[name]?.test(from);
    });
    expect(wrong).toEqual([]);
  });

  it("of main.ts are dynamic", () => {
    const eager = imports.filter(({ from, to, typeOnly, dynamic }) =>
      from === "main.ts" && !typeOnly && !dynamic &&
      !/^(src\/base\/(version|lazy_import|proxy)|cli\/relay)\.ts$/.test(to)
    );
    expect(eager).toEqual([]);
  });

  it("of `svc runner` reach no table and no password, so it starts sooner", () => {
    const reached = new Set(["src/boot/runner.ts"]);
    for (const file of reached) {
      for (const { from, to, typeOnly, dynamic } of imports) {
        if (from === file && !typeOnly && !dynamic) reached.add(to);
      }
    }
    const service = [...reached].filter((path) => /^(src\/(store|api|pipeline|platform)\/|jose)/.test(path));
    expect(service).toEqual(["src/store/db/database_error.ts"]);
  });

  it("load the folder of a platform through its manifest only, and on demand (decision 0005)", () => {
    const findFolder = (path: string) => /^src\/platform\/(\w+)\//.exec(path)?.[1];
    const isManifest = (path: string) => path.endsWith("/manifest.ts");
    const inFolders = imports.filter(({ to, typeOnly }) =>
      !typeOnly && findFolder(to) !== undefined && findFolder(to) !== "local"
    );
    const entries = inFolders.filter(({ from, to }) => findFolder(from) !== findFolder(to));
    expect(entries.filter(({ from, to }) => from !== "src/platform/registry.ts" || !isManifest(to))).toEqual(
      [],
    );
    const folders = [...Deno.readDirSync(join(ROOT, "src/platform"))].filter((one) => one.isDirectory);
    const others = folders.map(({ name }) => name).filter((name) => name !== "local").sort();
    expect(entries.map(({ to }) => findFolder(to)).sort()).toEqual(others);
    expect(inFolders.filter(({ from, dynamic }) => isManifest(from) && !dynamic)).toEqual([]);
  });

  it("let config read the manifests of platforms only", () => {
    const read = imports.filter(({ from, to }) =>
      from.startsWith("src/config/") && to.startsWith("src/platform/")
    ).map(({ to }) => to);
    expect([...new Set(read)].sort()).toEqual(["src/platform/manifest.ts", "src/platform/registry.ts"]);
  });

  it("keep the manifests of platforms light", () => {
    const packages = imports.filter(({ from, to, dynamic, typeOnly }) =>
      /^src\/platform\/(\w+\/)?(manifest|registry)\.ts$/.test(from) && !dynamic && !typeOnly &&
      !/^src\/(domain|base)\/|\/manifest\.ts$/.test(to)
    );
    expect(packages.filter(({ to }) => to !== "zod")).toEqual([]);
  });

  it("reach every file", () => {
    expect(listSourceFiles("src", "cli").filter((file) => !files.includes(file))).toEqual([]);
  });
});
