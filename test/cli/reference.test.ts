import { expect, it } from "vitest";
import { join } from "node:path";
import { ROOT } from "../harness/tree.ts";
import { reference } from "../reference.ts";

it("docs/reference/cli.md equals what `make docs` writes from the commands", async () => {
  expect(await Deno.readTextFile(join(ROOT, "docs/reference/cli.md"))).toBe(await reference());
});
