import { expect, it } from "vitest";
import { join } from "node:path";
import { ROOT } from "../harness/tree.ts";
import { reference } from "../reference.ts";

it("docs/cli.md is what the commands say of themselves; `make docs` writes it", async () => {
  expect(await Deno.readTextFile(join(ROOT, "docs/cli.md"))).toBe(await reference());
});
