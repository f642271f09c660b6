import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listDocuments, readText, ROOT } from "../harness/house/tree.ts";

const PAGES = [
  ...["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "packaging/README.md"],
  ...listDocuments(),
];

const WORDS_MAX = 1_500;

/** Pages that are one table, are generated, whose sections the code cites by number, or that a program is written from. */
const LONG = ["cli", "contract", "limits", "runner-protocol"].map((name) => `docs/reference/${name}.md`)
  .concat("docs/reliability.md");

const KINDS = ["decisions", "explanation", "how-to", "reference", "tutorials"];

const DECISIONS_MAX = 40;

describe("documents", () => {
  it("link to files and headings that exist", () => {
    expect(PAGES.flatMap((page) => findBrokenLinks(page, readText(page)))).toEqual([]);
  });

  it("with a missing file or a missing heading are reported", () => {
    const text =
      "[a](nowhere.md) [b](README.md#nowhere) [c](README.md#documentation) [d](https://example.org)";
    expect(findBrokenLinks("docs/README.md", text)).toEqual([
      "docs/README.md: nowhere.md",
      "docs/README.md: README.md#nowhere",
    ]);
  });

  it("are in a folder of their kind, and docs/README.md lists each", () => {
    const folders = [...Deno.readDirSync(join(ROOT, "docs"))].filter((entry) => entry.isDirectory);
    expect(folders.map(({ name }) => name).sort()).toEqual(KINDS);
    const index = readText("docs/README.md");
    const pages = listDocuments().filter((page) =>
      !page.startsWith("docs/decisions/") && page !== "docs/README.md"
    );
    expect(pages.filter((page) => !index.includes(`](${page.slice("docs/".length)})`))).toEqual([]);
  });

  it(`have at most ${WORDS_MAX} words`, () => {
    const long = listDocuments().filter((page) => readText(page).split(/\s+/).length > WORDS_MAX);
    expect(long.filter((page) => !LONG.includes(page))).toEqual([]);
  });

  it(`have at most ${DECISIONS_MAX} decisions, each with context, choice and price`, () => {
    const decisions = listDocuments("docs/decisions");
    expect(decisions.length).toBeLessThanOrEqual(DECISIONS_MAX);
    const parts = ["**Context.**", "**Choice.**", "**Price.**"];
    expect(decisions.filter((page) => !parts.every((part) => readText(page).includes(part)))).toEqual([]);
  });
});

/** Finds the relative links of `page` that lead to no file or no heading. */
function findBrokenLinks(page: string, source: string): string[] {
  const text = source.replace(/```[\s\S]*?```|`[^`\n]*`/g, "");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = "", heading] = link.split("#");
      const target = path === "" ? page : join(page, "..", path);
      if (!exists(target)) return true;
      return heading !== undefined && !listHeadings(readText(target)).has(heading);
    })
    .map((link) => `${page}: ${link}`);
}

/** Lists headings as GitHub turns them into anchors. */
function listHeadings(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")
    ),
  );
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(join(ROOT, path)) !== null;
  } catch {
    return false;
  }
}
