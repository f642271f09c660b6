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

  it("refuses a path that it cannot resolve, and names the file", () => {
    expect(() => transformCode("load<T>(path, import.meta.url)")).toThrow(
      /^cli\/commands\/groups\.ts: load</,
    );
    expect(() => transformCode('Deno.readTextFile(new URL("./page.html", import.meta.url))')).toThrow(
      /openAsset/,
    );
  });

  it("leaves packages alone", () => {
    expect(transformCode("import.meta.url", "node_modules/x/index.js")).toBeUndefined();
  });
});
