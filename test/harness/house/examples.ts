import { GROUPS, loadGroup } from "../../../cli/commands/groups.ts";
import { documents, textOf } from "./tree.ts";

/** A command that a document or a help shows, and where. */
export interface Example {
  from: string;
  line: string;
}

/** What the help of every command of `svc ctl` shows; `docs/reference/cli.md` is made of the same. */
export async function helpExamples(): Promise<Example[]> {
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
export function writtenPages(): string[] {
  return ["README.md", ...documents().filter((page) => page !== "docs/reference/cli.md")];
}

/** Code blocks of a page in a language, as they stand. */
export function blocksOf(page: string, language: string): string[] {
  const pattern = new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, "gm");
  return [...textOf(page).matchAll(pattern)].map(([, text = ""]) => text);
}

/** The commands of a page's `sh` blocks, one by one: without comments, with continued lines put together. */
export function shownCommands(page: string): Example[] {
  return blocksOf(page, "sh").filter((block) => !block.startsWith("# tested: "))
    .flatMap((block) => block.replace(/\\\n\s*/g, "").split("\n"))
    .map((line) => line.replace(/(^|\s+)# .*$|\s+#\s.*$/, "").trim())
    .filter((line) => line !== "")
    .map((line) => ({ from: page, line }));
}

/** The words of a line that a shell needs for nothing but quotes; null where it needs more. */
export function plainWords(line: string): string[] | null {
  if (/[|<>$`;&]/.test(line.replace(/'[^']*'/g, ""))) return null;
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}
