import { join } from "node:path";
import { expect, it } from "vitest";
import { readText, ROOT } from "../harness/house/tree.ts";
import { buildReliability, findProofs, readPromises } from "../reliability.ts";

const WITHOUT_TEST = /^(not proven|does not apply|measured)\b/;

it("docs/reliability.md equals the output of `make docs`", () => {
  expect(readText("docs/reliability.md")).toBe(buildReliability());
});

it("each promise has a test with its id or a reason, and each tag names a promise", () => {
  const promises = readPromises();
  const proven = new Set(findProofs().flatMap(({ ids }) => ids));
  const ids = promises.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(promises.filter(({ id, note }) => !proven.has(id) && !WITHOUT_TEST.test(note))).toEqual([]);
  expect([...proven].filter((id) => !ids.includes(id))).toEqual([]);
});

it("every file of the repository that a document names exists", () => {
  const documents = [...Deno.readDirSync(join(ROOT, "docs"))].filter((entry) => entry.isFile).map((entry) =>
    `docs/${entry.name}`
  );
  const missing = ["README.md", ...documents].flatMap((document) =>
    [...readText(document).matchAll(/`((?:test|src|cli|bench|build|docs)\/[\w./-]+\.\w+)`/g)]
      .map(([, file = ""]) => file)
      .filter((file) => !exists(join(ROOT, file)))
      .map((file) => `${document}: ${file}`)
  );
  expect(missing).toEqual([]);
});

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
