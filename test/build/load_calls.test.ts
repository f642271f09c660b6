import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createLoadCallsPlugin } from "../../build/load_calls.ts";
import { ROOT } from "../../build/lock.ts";

type Transform = (code: string, id: string) => { code: string } | null;

function transformCode(code: string, file = "cli/commands/groups.ts"): string | undefined {
  const transform = createLoadCallsPlugin().transform as unknown as Transform;
  return transform(code, join(ROOT, file))?.code;
}

describe("createLoadCallsPlugin() (decision 0005)", () => {
  it("turns a load call into an import", () => {
    expect(transformCode('await load<typeof import("./x.ts")>("./x.ts", import.meta.url);')).toBe(
      'await import("./x.ts");',
    );
    expect(transformCode('load<typeof import("./x.ts")>(\n  "./x.ts",\n  import.meta.url,\n)')).toBe(
      'import("./x.ts")',
    );
  });

  it("turns a name in the path into one import for each file that matches", () => {
    const code = transformCode("return load<T>(`./workers/${name}.ts`, import.meta.url);") ?? "";
    expect(code).toContain('"worker": () => import("./workers/worker.ts")');
    expect(code).toMatch(/\}\)\[name\]\(\);$/);
    const files = [...Deno.readDirSync(join(ROOT, "cli/commands/workers"))].length;
    expect(code.match(/import\(/g)).toHaveLength(files);
  });

  it("refuses a path that it cannot resolve, and names the file", () => {
    expect(() => transformCode("load<T>(path, import.meta.url)")).toThrow(
      /^cli\/commands\/groups\.ts: load</,
    );
    expect(() => transformCode("load<T>(`${a}/${b}.ts`, import.meta.url)")).toThrow(/one name/);
    expect(() => transformCode('Deno.readTextFile(new URL("./page.html", import.meta.url))')).toThrow(
      /openAsset/,
    );
  });

  it("leaves packages alone", () => {
    expect(transformCode("import.meta.url", "node_modules/x/index.js")).toBeUndefined();
  });
});
