import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readAddon } from "../../build/addon.ts";
import { type Bundle, bundle, ENTRY } from "../../build/bundle.ts";
import { readLock } from "../../build/lock.ts";
import { findTarget } from "../../build/target.ts";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";
import { listSourceFiles, readText, ROOT } from "../harness/house/tree.ts";

const STAMP = { version: "0.1.0", commit: "0123456789abcdef", commitTime: "2026-01-02T03:04:05.000Z" };

// Dependencies of the console's packages.
const BROUGHT_BY_CONSOLE = ["@preact/signals-core", "regexparam", "mitt", "use-sync-external-store"];

function findSwaggerCss(): string {
  return createRequire(join(ROOT, "main.ts")).resolve("swagger-ui-dist/swagger-ui.css");
}

describe("bundle", () => {
  let folder = "";
  let made: Bundle;
  const program = () => [Deno.execPath(), "run", "-A", "--no-config", join(folder, ENTRY)];

  beforeAll(async () => {
    folder = await Deno.makeTempDir({ prefix: "svc-bundle-" });
    made = await bundle(folder, await readAddon(findTarget(undefined)), STAMP);
  });
  afterAll(() => Deno.remove(folder, { recursive: true }));

  it("gives the same bytes and times for the same source [SUP-4]", async () => {
    await using other = await createTempDir();
    const again = await bundle(other.path, await readAddon(findTarget(undefined)), STAMP);
    expect(again).toEqual(made);
    for (const name of Object.keys(made.files)) {
      const [first, second] = [await Deno.stat(join(folder, name)), await Deno.stat(join(other.path, name))];
      expect([name, second.mtime, second.size]).toEqual([name, first.mtime, first.size]);
    }
  });

  it("contains every module with code, found by imports and load calls", () => {
    // A file of types leaves nothing in the bundle, and the build removes load().
    const absent = listSourceFiles("src", "cli").filter((file) => !made.modules.includes(file));
    const withCode = absent.filter((file) =>
      /^export (async function|function|class) (?!load\b)/m.test(readText(file))
    );
    expect(withCode).toEqual([]);
    expect(made.modules).toContain("cli/commands/workers/worker.ts");
  });

  it("has one addon, and no package that only development needs", () => {
    const names = made.packages.map(({ name }) => name);
    expect(names).toContain("hono");
    const ofConsole = new Set([
      ...Object.keys(JSON.parse(readText("console/deno.json")).imports),
      ...BROUGHT_BY_CONSOLE,
    ]);
    // The limit allows a few transitive packages; more need a decision (reliability SUP-3). E-mail and traces bring about 40, which only
    // a service with a mailbox or a collector loads. The console has a separate limit.
    expect(names.filter((name) => !ofConsole.has(name)).length).toBeLessThanOrEqual(90);
    expect(names.filter((name) => ofConsole.has(name)).length).toBeLessThanOrEqual(13);
    expect(names.filter((name) => name.startsWith("@libsql/") && /linux|darwin|win32/.test(name))).toEqual([
      findTarget(undefined).addon,
    ]);
    for (const name of ["vitest", "vite", "rolldown", "fast-check", "@types/node"]) {
      expect(names).not.toContain(name);
    }
    const others = Object.keys(made.files).filter((name) => !/\.(js|node\.gz)$/.test(name));
    expect(others.filter((name) => !name.startsWith("console-"))).toEqual([
      expect.stringMatching(/^swagger-ui-bundle\.js-[0-9a-f]{8}\.gz$/),
      expect.stringMatching(/^swagger-ui\.css-[0-9a-f]{8}\.gz$/),
    ]);
    expect(names).toContain("swagger-ui-dist");
    expect(others.filter((name) => /^console-(index\.html|main-[\w-]{8}\.js)\.gz$/.test(name)).length).toBe(
      2,
    );
    expect(names).toContain("preact");
  });

  it("names packages as deno.lock pins them [SUP-1]", async () => {
    const lock = await readLock();
    for (const { name, version, integrity } of made.packages) {
      expect(lock.get(name)).toContainEqual({ name, version, integrity });
      expect(integrity).toMatch(/^sha512-/);
    }
  });

  it("runs: a message gets its reply, and the addon is kept in the data directory", async () => {
    await using data = await createTempDir();
    await using server = await startServer({ dataDir: data.path, program: program() });
    const ctl = (...args: string[]) => svc(["ctl", ...args], { dataDir: data.path, program: program() });
    expect((await ctl("worker", "create", "-n", "Echo", "-q")).code).toBe(0);
    expect(await ctl("chat", "@Echo good morning")).toMatchObject({ code: 0, out: "good morning\n" });
    const page = await fetch(`${server.url}/docs/swagger-ui.css`);
    expect([page.status, await page.text()]).toEqual([200, await Deno.readTextFile(findSwaggerCss())]);
    const consolePage = await (await fetch(server.url)).text();
    const script = /src="([^"]+\.js)"/.exec(consolePage)?.[1] ?? "";
    expect((await fetch(server.url + script)).status).toBe(200);
    const kept = [...Deno.readDirSync(join(data.path, "addon"))].map((entry) => entry.name);
    expect(kept).toEqual([(await readAddon(findTarget(undefined))).name]);
    expect((await server.end()).code).toBe(0);
  });

  it("contains the stamp of its commit", async () => {
    await using data = await createTempDir();
    const { out } = await svc(["version", "--json"], { dataDir: data.path, program: program() });
    expect(JSON.parse(out)).toMatchObject({ commit: STAMP.commit, commit_time: STAMP.commitTime });
    const short = await svc(["version"], { dataDir: data.path, program: program() });
    expect(short.out).toBe("svc 0.1.0 (0123456789ab, 2026-01-02)\n");
  });
});
