import { GROUPS, loadGroup } from "../../../cli/commands/groups.ts";
import { splitWords } from "../terminal.ts";
import { listDocuments, readText } from "./tree.ts";

/** A command in a document or a help text, with its place. */
export interface Example {
  from: string;
  line: string;
}

/** Returns the help examples of every command of `svc ctl`; `docs/reference/cli.md` has the same. */
export async function listHelpExamples(): Promise<Example[]> {
  const all: Example[] = [];
  for (const name of Object.keys(GROUPS)) {
    const group = await loadGroup(name);
    for (const spec of Array.isArray(group) ? group : [group]) {
      const from = group === spec ? name : `${name} ${spec.name}`;
      all.push(...spec.examples.map((example) => ({ from, line: `svc ctl ${example}` })));
    }
  }
  return all;
}

/** Lists the README and the hand-written pages of the documentation. */
export function listWrittenPages(): string[] {
  return ["README.md", ...listDocuments().filter((page) => page !== "docs/reference/cli.md")];
}

/** Returns the code blocks of a page in a language, unchanged. */
export function readBlocks(page: string, language: string): string[] {
  const pattern = new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, "gm");
  return [...readText(page).matchAll(pattern)].map(([, text = ""]) => text);
}

/** Returns the commands of a page's `sh` blocks without comments and with joined continuation lines. */
export function readShownCommands(page: string): Example[] {
  return readBlocks(page, "sh").filter((block) => !block.startsWith("# tested: "))
    .flatMap((block) => block.replace(/\\\n\s*/g, "").split("\n"))
    .map((line) => line.replace(/(^|\s+)# .*$|\s+#\s.*$/, "").trim())
    .filter((line) => line !== "")
    .map((line) => ({ from: page, line }));
}

/** Splits a line into words. Returns null if it needs a shell for more than quotes. */
export function splitPlainWords(line: string): string[] | null {
  if (/[|<>$`;&]/.test(line.replace(/'[^']*'/g, ""))) return null;
  return splitWords(line);
}
