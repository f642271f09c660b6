import { join, relative } from "node:path";
import { readText, ROOT } from "./tree.ts";

/** The text of a file with each multi-line comment joined into one line. */
interface Prose {
  file: string;
  text: string;
  /** Returns the file's line, from 1, of the character at `offset`. */
  lineAt(offset: number): number;
}

/** Citation targets, by document. */
type Targets = Record<string, ReadonlySet<string>>;

/** An error with its place. */
interface CitationError {
  place: string;
  problem: string;
}

const FOLDERS = ["src", "cli", "console", "build", "bench", "test", ".ci"];
const SINGLE_FILES = ["main.ts", "Makefile", "Dockerfile", "install.sh", "config.yaml.example"];
// In documents, a list or table line may also contain a break.
const CONTINUED = /\n[ \t]*(?:\*(?!\/)|\/\/|#)?[ \t]*/g;

/** Lists the files whose comments may cite. This file and its test name the refused forms. */
export function listCitingFiles(): string[] {
  const own = /^test\/(harness\/)?house\/citations/;
  return [...FOLDERS.flatMap((folder) => walk(join(ROOT, folder))), ...SINGLE_FILES]
    .filter((file) => /(\.(tsx?|sh)|^\.ci\/run)$|^[^/]+$/.test(file) && !own.test(file)).sort();
}

function walk(path: string): string[] {
  const info = Deno.statSync(path);
  if (info.isFile) return [relative(ROOT, path)];
  return [...Deno.readDirSync(path)].flatMap((entry) => walk(join(path, entry.name)));
}

/** Reads a file as prose: a line break inside a comment is one blank. */
export function readProse(file: string): Prose {
  return parseProse(file, readText(file));
}

/** Returns `source`, the text of `file`, as prose. */
export function parseProse(file: string, source: string): Prose {
  const breaks: number[] = [];
  let text = "";
  let end = 0;
  for (const match of source.matchAll(CONTINUED)) {
    text += source.slice(end, match.index);
    breaks.push(text.length);
    text += " ";
    end = match.index + match[0].length;
  }
  text += source.slice(end);
  const lineAt = (offset: number) => 1 + breaks.filter((one) => one < offset).length;
  return { file, text, lineAt };
}

/** Reads everything that can be cited from the documents. */
export function readTargets(): Targets {
  return {
    contract: listNumbered("docs/reference/contract.md"),
    interface: listNumbered("docs/reference/interface.md"),
    reliability: new Set(
      [...readText("docs/reliability.md").matchAll(/^\| (([A-Z]{3})-\d+|I\d) \|/gm)]
        .flatMap(([, id = "", family = id]) => [id, family]),
    ),
    facts: listFacts(),
    architecture: new Set([
      ...[...readText("docs/explanation/architecture.md").matchAll(/^(\d)\. \*\*/gm)].map(([, n]) =>
        `sentence ${n}`
      ),
      ...[...readText("docs/explanation/architecture.md").matchAll(/^## (.+)$/gm)].map(([, name = ""]) =>
        name
      ),
    ]),
    decision: new Set(
      [...Deno.readDirSync(join(ROOT, "docs/decisions"))].map((entry) => entry.name.slice(0, 4)),
    ),
  };
}

/** Lists sections, their points, and names in them: `4`, `4.5`, `3, Task`, `4.2, task list`. */
function listNumbered(document: string): Set<string> {
  const found = new Set<string>();
  let section = "";
  let named = false;
  for (const line of readText(document).split("\n")) {
    const heading = /^(##+) (?:(\d+(?:\.\d+)?)\.? )?(.*)$/.exec(line);
    if (heading !== null) {
      const [, , number, name = ""] = heading;
      named = number === undefined;
      if (number === undefined) found.add(`${section}, ${name}`);
      else found.add(section = number);
    }
    const point = /^(\d+)\. /.exec(line);
    if (point !== null && !named) found.add(`${section}.${point[1]}`);
    const [, row] = /^\| ([a-z-]+ [a-z-, ]+?) \|/.exec(line) ?? [];
    for (const command of row?.split(", ") ?? []) found.add(`${section}, ${command}`);
  }
  return found;
}

/** Lists headings with their numbers: `libSQL 8`, `engines 2.4`. */
function listFacts(): Set<string> {
  const found = new Set<string>();
  let heading = "";
  for (const line of readText("docs/reference/facts.md").split("\n")) {
    heading = /^## (.+)$/.exec(line)?.[1] ?? heading;
    const [, number] = /^(?:### |\*\*)(\d+(?:\.\d+)?)\./.exec(line) ?? [];
    if (number !== undefined) found.add(`${heading} ${number}`);
  }
  return found;
}

const RULE = /\b(contract|interface) (\d+(?:\.\d+)*)(?:, ((?:[A-Z][a-z]+(?: [a-z]+){0,2}|[a-z]+ [a-z-]+)))?/g;
const OTHER_DOCUMENT = /^(contract|interface|reliability|facts|architecture|decision)\b/;
const ROWS = /\breliability ((?:[A-Z]{3}(?:-\d+)?|I\d)(?:(?:, | to | and )(?:[A-Z]{3}-\d+|I\d))*)/g;
const FACT = /\bfacts, ([A-Za-z]+(?: server)?)(?: (\d+(?:\.\d+)?))?/g;
const SENTENCE = /\barchitecture, (sentence \d+|[A-Z][a-z]+(?: [a-z]+)*)/g;
const DECISION = /\bdecisions? (\d{4})\b/g;
const PATH = /`((?:src|cli|test|docs|build|bench|\.ci)\/[\w./-]+)`|\b(docs\/[\w/-]+\.md)\b/g;

/** Finds citations without a target. */
export function findUnresolved(prose: Prose, targets: Targets): CitationError[] {
  const wrong: CitationError[] = [];
  const expect = (document: string, target: string, offset: number) => {
    if (targets[document]?.has(target)) return;
    const problem = `${document} ${target}: there is no such rule`;
    wrong.push({ place: `${prose.file}:${prose.lineAt(offset)}`, problem });
  };
  for (const { 1: document = "", 2: number = "", 3: name, index } of prose.text.matchAll(RULE)) {
    const names = name === undefined || OTHER_DOCUMENT.test(name) ? [] : listPrefixes(name);
    const named = names.map((one) => `${number}, ${one}`);
    expect(document, named.find((one) => targets[document]?.has(one)) ?? named[0] ?? number, index);
  }
  for (const { 1: ids = "", index } of prose.text.matchAll(ROWS)) {
    for (const id of ids.split(/, | to | and /)) expect("reliability", id, index);
  }
  for (const { 1: heading = "", 2: number = "(no number)", index } of prose.text.matchAll(FACT)) {
    expect("facts", `${heading} ${number}`, index);
  }
  for (const { 1: name = "", index } of prose.text.matchAll(SENTENCE)) expect("architecture", name, index);
  for (const { 1: number = "", index } of prose.text.matchAll(DECISION)) expect("decision", number, index);
  for (const { 1: quoted, 2: plain = "", index } of prose.text.matchAll(PATH)) {
    const path = quoted ?? plain;
    if (exists(join(ROOT, path))) continue;
    wrong.push({ place: `${prose.file}:${prose.lineAt(index)}`, problem: `there is no file ${path}` });
  }
  return wrong;
}

/**
 * Lists the prefixes of a name, because prose may follow it: `Local chat message of`, `Local chat message`,
 * `Local chat`, `Local`.
 */
function listPrefixes(name: string): string[] {
  const words = name.split(" ");
  return words.map((_word, index) => words.slice(0, words.length - index).join(" "));
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile || Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

/** Refused forms: documents outside the repository, and other ways to write a number. */
const REFUSED: readonly [RegExp, string][] = [
  [/\bpromises,? (?:[A-Z]{3}\b|I\d|test bench|threat model)/g, "write `reliability` and the row's id"],
  [/\(house\b|\bhouse,? (?:sentence |style|\d)/g, "write `architecture, sentence N`"],
  [/\(style\b/g, "write `architecture, Style`"],
  [/\b(?:the|this) specification\b/gi, "cite interface.md or contract.md of docs/reference by number"],
  [/\.\.\/shared\/(?:spec|facts|design)\b/g, "cite files of this repository only"],
  [/\b(?:contract|interface)\b[^.;:()]{0,12}\b(?:sections?|points?) \d/g, "write `contract 4.5`"],
  [/\b(?:contract|interface) \d+(?:\.\d+)?(?:, | and | to )\d/g, "name the document before each number"],
  [
    /\binterface \d+(?:\.\d+)? (?:worker|task|memory|session|execution|department|system|message)\b/g,
    "write `interface 4.2, task list`",
  ],
  [/\bcontract, ["A-Z]/g, "a rule of the contract has a number"],
  [
    /\bfacts (?:Deno|libSQL|engines)\b|\bfacts\/[a-z]+\.md|\bfacts, \w+,? finding/g,
    "write `facts, libSQL 8`",
  ],
];

/** Finds citations in a refused form. */
export function findRefused(prose: Prose): CitationError[] {
  return REFUSED.flatMap(([form, advice]) =>
    [...prose.text.matchAll(form)].map((match) => ({
      place: `${prose.file}:${prose.lineAt(match.index)}`,
      problem: `${JSON.stringify(match[0].trim())}: ${advice}`,
    }))
  );
}
