// Writes docs/reliability.md from test/promises.md and the tags of tests: `make docs`.
import { listSourceFiles, readText } from "./harness/house/tree.ts";

/** A test, or a check of a long run, with the ids of its promises. */
export interface Proof {
  file: string;
  title: string;
  ids: string[];
}

const TAG = /\[((?:[A-Z]{3}-\d+)(?:, [A-Z]{3}-\d+)*)\]/g;
const ROW = /^\| ([A-Z]{3}-\d+) \| (.+?) \| (.*?) ?\|$/gm;

/** Finds every tag below test/, at the end of a name or in a comment. */
export function findProofs(files = listSourceFiles("test")): Proof[] {
  return files.flatMap((file) => {
    const text = readText(file);
    return [...text.matchAll(TAG)].map(({ 0: tag, 1: ids = "", index }) => ({
      file,
      title: titleBefore(text, index, text[index + tag.length] ?? ""),
      ids: ids.split(", "),
    }));
  });
}

/** The name or comment that ends with the tag at `end`, on one line and without the values of variables. */
function titleBefore(text: string, end: number, quote: string): string {
  const isName = /["'`]/.test(quote);
  const start = isName ? text.lastIndexOf(quote, end - 1) + 1 : text.lastIndexOf("\n", end) + 1;
  const title = text.slice(start, end).replaceAll(/\$\{[^}]*\}/g, "N").replaceAll(/\\(.)/g, "$1").trim();
  return isName ? title : title.replace(/^(\/\*\*|\/\/|\*) /, "");
}

/** Reads the promises: id, text, and a note where one is needed. */
export function readPromises(): { id: string; note: string }[] {
  return [...readText("test/promises.md").matchAll(ROW)].map(([, id = "", , note = ""]) => ({ id, note }));
}

/** Builds docs/reliability.md. */
export function buildReliability(proofs = findProofs()): string {
  return readText("test/promises.md").replaceAll(ROW, (_row, id: string, text: string, note: string) => {
    const own = Map.groupBy(proofs.filter(({ ids }) => ids.includes(id)), ({ file }) => file);
    const tests = [...own].map(([file, found]) =>
      `\`${file}\` ${found.map(({ title }) => `"${title.replaceAll("|", "\\|")}"`).join(", ")}`
    );
    return `| ${id} | ${text} | ${[note, ...tests].filter((part) => part !== "").join("; ")} |`;
  });
}

if (import.meta.main) {
  await Deno.writeTextFile(new URL("../docs/reliability.md", import.meta.url), buildReliability());
}
