import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT, sourceFiles, textOf } from "../harness/tree.ts";

/** How many rows each family has, in the order of the document. */
const FAMILIES: Record<string, number> = {
  DUR: 11,
  DSP: 15,
  CRN: 10,
  CHD: 15,
  SHD: 9,
  DBF: 13,
  BKP: 6,
  SSE: 8,
  UPL: 6,
  AUT: 11,
  SCP: 8,
  PTH: 5,
  SEC: 7,
  SUP: 5,
  BAK: 11,
  BYT: 4,
  QST: 2,
  USR: 4,
  BUD: 2,
  FLT: 1,
  PLT: 6,
  WHK: 3,
  CMD: 3,
  CNS: 4,
  RUN: 4,
};
const WITHOUT_TEST = /^(not proven|does not apply|measured)\b/;

it("docs/reliability.md has a row for each guarantee, and every test that it names exists", () => {
  const rows = [...textOf("docs/reliability.md").matchAll(/^\| ([A-Z]{3}-\d+) \| (.+?) \| (.+) \|$/gm)];
  const ids = Object.entries(FAMILIES).flatMap(([family, count]) =>
    Array.from({ length: count }, (_, index) => `${family}-${index + 1}`)
  );
  expect(rows.map(([, id]) => id)).toEqual(ids);
  const files = new Set(sourceFiles("test"));
  const wrong: string[] = [];
  for (const [, id, , shown = ""] of rows) {
    const proofs = [...shown.matchAll(/`(test\/[\w./]+)` "([^"]+)"/g)];
    if (proofs.length === 0 && !WITHOUT_TEST.test(shown)) {
      wrong.push(`${id} names no test and does not say why`);
    }
    for (const [, file = "", words = ""] of proofs) {
      if (!files.has(file)) wrong.push(`${id}: there is no ${file}`);
      else if (!textOf(file).includes(words)) {
        wrong.push(`${id}: ${file} has no test that says ${JSON.stringify(words)}`);
      }
    }
  }
  expect(wrong).toEqual([]);
});

it("every file of the repository that a document names exists", () => {
  const documents = [...Deno.readDirSync(join(ROOT, "docs"))].filter((entry) => entry.isFile).map((entry) =>
    `docs/${entry.name}`
  );
  const missing = ["README.md", ...documents].flatMap((document) =>
    [...textOf(document).matchAll(/`((?:test|src|cli|bench|build|docs)\/[\w./-]+\.\w+)`/g)]
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
