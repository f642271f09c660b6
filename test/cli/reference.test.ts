import { expect, it } from "vitest";
import { join } from "node:path";
import { ROOT } from "../harness/house/tree.ts";
import { buildReference, REFERENCE } from "../reference.ts";

it("docs/reference/cli.md is up to date with the commands", async () => {
  expect(await Deno.readTextFile(join(ROOT, REFERENCE))).toBe(await buildReference());
});
