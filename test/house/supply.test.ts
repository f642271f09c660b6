import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ADDON_SUMS, checkAddon } from "../../build/addon_sums.ts";
import { listVulnerable } from "../../build/advisories.ts";
import list from "../../build/advisories.json" with { type: "json" };
import { readLock } from "../../build/lock.ts";
import { TARGETS } from "../../build/target.ts";
import { listSourceFiles, readText, ROOT } from "../harness/house/tree.ts";

const RUNTIME_PACKAGES_MAX = 27;

const config = JSON.parse(readText("deno.json")) as Record<string, unknown> & {
  imports: Record<string, string>;
};

/** Lists the packages that the program itself imports, without those of its tests and its build. */
function listRuntimePackages(): string[] {
  const texts = listSourceFiles("main.ts", "src", "cli").map(readText);
  const names = Object.keys(config.imports);
  return names.filter((name) =>
    texts.some((text) => text.includes(`"${name}"`) || text.includes(`"${name}/`))
  ).sort();
}

describe("packages [SUP-1]", () => {
  it("are pinned to one version, come from npm, and are in the lock with their hash [SUP-1]", async () => {
    const lock = await readLock();
    for (const [name, target] of Object.entries(config.imports)) {
      const [, pinned = "", version = ""] = /^npm:(@?[^@]+)@(\d+\.\d+\.\d+)$/.exec(target) ?? [];
      expect([target, pinned]).toEqual([target, name]);
      expect([name, lock.get(name)?.map((one) => one.version)]).toEqual([
        name,
        expect.arrayContaining([version]),
      ]);
    }
    const all = [...lock.values()].flat();
    expect(all.length).toBeGreaterThan(100);
    for (const { name, version, integrity } of all) {
      expect([name, version, integrity]).toEqual([
        name,
        version,
        expect.stringMatching(/^sha512-[A-Za-z0-9+/]{86}==$/),
      ]);
    }
  });

  it("come from nowhere else: every import is a listed package, a file, or part of the runtime", () => {
    const foreign: string[] = [];
    for (const file of listSourceFiles("main.ts", "src", "cli", "build", "bench", "test")) {
      for (
        const [, specifier = ""] of readText(file).matchAll(/^(?:import|export)[^"';]*?from "([^"]+)"/gm)
      ) {
        const own = specifier.startsWith(".") || specifier.startsWith("node:");
        const listed = Object.keys(config.imports).some((name) =>
          specifier === name || specifier.startsWith(`${name}/`)
        );
        if (!own && !listed) foreign.push(`${file}: ${specifier}`);
      }
    }
    expect(foreign).toEqual([]);
  });

  it("run no install scripts, and CI accepts only the versions in the lock", () => {
    expect(config.allowScripts).toBeUndefined();
    const files = ["Makefile", ".ci/run", "Dockerfile", "install.sh"];
    const steps = files.map((file) => readText(file)).join("\n");
    expect(steps).not.toMatch(/--allow-scripts/);
    for (const line of steps.split("\n")) {
      if (/\bnpm (install|ci)\b/.test(line) && !/echo|^\s*#/.test(line)) {
        expect(line).toContain("--ignore-scripts");
      }
    }
    expect(readText("Makefile")).toMatch(/^FROZEN := \$\(if \$\(CI\),--frozen,\)$/m);
    expect(readText("Makefile").match(/deno_?\)? install/gi)?.length ?? 0).toBe(
      readText("Makefile").match(/install \$\(FROZEN\)/g)?.length ?? -1,
    );
    expect(readText(".ci/run")).toMatch(/^export CI=1/m);
  });
});

describe("published advisories", () => {
  it("name no locked package", async () => {
    expect(listVulnerable([...(await readLock()).values()].flat(), list.advisories)).toEqual([]);
  });

  it.each([
    ["8.18.3", ["CVE-2026-48779", "CVE-2026-62389"]],
    ["8.9.0", ["CVE-2026-48779", "CVE-2026-62389", "CVE-2024-37890"]],
    ["8.23.0", []],
    ["10.0.0", []],
  ])("of ws %s are %j", (version, ids) => {
    const found = listVulnerable([{ name: "ws", version, integrity: "" }], list.advisories);
    expect(found).toEqual(ids.map((id) => expect.stringContaining(id)));
  });
});

describe("native code [SUP-2]", () => {
  it("matches its checksum for every target, and the installed files were reviewed [SUP-2]", async () => {
    const lock = await readLock();
    for (const { addon } of TARGETS) {
      const version = lock.get(addon)?.[0]?.version;
      expect([addon, ADDON_SUMS[`${addon}@${version}`]]).toEqual([
        addon,
        expect.stringMatching(/^[0-9a-f]{64}$/),
      ]);
    }
    const own = TARGETS.find((target) => target.triple === Deno.build.target);
    const [locked] = lock.get(own?.addon ?? "") ?? [];
    if (locked === undefined) return;
    const folder = `${locked.name.replace("/", "+")}@${locked.version}`;
    const bytes = await Deno.readFile(
      join(ROOT, "node_modules/.deno", folder, "node_modules", locked.name, "index.node"),
    );
    const sum = createHash("sha256").update(bytes).digest("hex");
    checkAddon(locked.name, locked.version, sum);
    expect(() => checkAddon(locked.name, locked.version, sum.replace(/^./, "x"))).toThrow(/its SHA-256 is x/);
    expect(() => checkAddon(locked.name, "9.9.9", sum)).toThrow(/does not know it/);
  });

  it("is in no other package: an installation compiles and unpacks nothing", () => {
    const lock = JSON.parse(readText("deno.lock")) as { npm: Record<string, { scripts?: boolean }> };
    // The install script counts installations for its authors and is not run.
    expect(
      Object.entries(lock.npm).filter(([, one]) => one.scripts).map(([name]) => name.replace(/@[\d.]+$/, "")),
    ).toEqual(["@scarf/scarf"]);
  });
});

describe("the number of packages [SUP-3]", () => {
  it(`stays below ${RUNTIME_PACKAGES_MAX + 1}, and the manual lists each with its purpose [SUP-3]`, () => {
    const used = listRuntimePackages();
    expect(used.length).toBeGreaterThan(10);
    expect(used.length).toBeLessThanOrEqual(RUNTIME_PACKAGES_MAX);
    const listed = [...readText("docs/reference/packages.md").matchAll(/^\| `([^`]+)` \| \S.*\|$/gm)].map((
      [, name = ""],
    ) => name);
    expect(listed.filter((name) => name in config.imports).sort()).toEqual(used);
  });
});
