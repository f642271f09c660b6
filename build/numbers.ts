// Prints the size of the project and the share of its texts with a phrase that CONTRIBUTING.md rules out.
import { dirname } from "node:path";
import {
  findDialect,
  findDialectInComment,
  readComments,
  readTestNames,
  readUserTexts,
} from "../test/harness/house/language.ts";
import { listSourceFiles, readText } from "../test/harness/house/tree.ts";

const PRODUCTION = ["src", "cli", "console"];
const SHORT_FILE_MAX_LINES = 30;

const production = listSourceFiles("main.ts", ...PRODUCTION);

function countLines(files: readonly string[]): number {
  return files.reduce((lines, file) => lines + readText(file).split("\n").length - 1, 0);
}

function listRepository(): string[] {
  const { stdout } = new Deno.Command("git", { args: ["ls-files"] }).outputSync();
  return new TextDecoder().decode(stdout).split("\n").filter((file) => file !== "" && !file.endsWith(".png"));
}

function findLargestFolder(): string {
  const folders = new Map<string, number>();
  for (const file of production) folders.set(dirname(file), (folders.get(dirname(file)) ?? 0) + 1);
  const [name = "", files = 0] = [...folders].sort((a, b) => b[1] - a[1])[0] ?? [];
  return `${name} (${files})`;
}

function matchAll(pattern: RegExp): string[] {
  return production.flatMap((file) => [...readText(file).matchAll(pattern)].map(([, name = ""]) => name));
}

function formatShare(hits: number, all: number): string {
  return `${hits} of ${all} (${(100 * hits / all).toFixed(1)} %)`;
}

const comments = readComments("main.ts", ...PRODUCTION, "build", "bench", "test");
const texts = readUserTexts("main.ts", "cli", "console");
const names = readTestNames("test");
const functions = matchAll(/^(?:export )?(?:async )?function (\w+)/gm);

const rows: [string, string | number][] = [
  ...PRODUCTION.map((
    folder,
  ): [string, number] => [`lines of ${folder}`, countLines(listSourceFiles(folder))]),
  ["lines of production", countLines(production)],
  ["lines of test", countLines(listSourceFiles("test"))],
  ["lines of the repository", countLines(listRepository())],
  ["largest folder of production (files)", findLargestFolder()],
  [
    `files of ${SHORT_FILE_MAX_LINES} lines and fewer`,
    production.filter((file) => countLines([file]) <= SHORT_FILE_MAX_LINES).length,
  ],
  [
    "exported concepts",
    matchAll(/^export (?:async )?(?:function|class|interface|type|const|abstract class) (\w+)/gm).length,
  ],
  [
    "functions ending in Of",
    formatShare(functions.filter((name) => name.endsWith("Of")).length, functions.length),
  ],
  [
    "comments with a phrase of the dialect",
    formatShare(comments.filter(({ text }) => findDialectInComment(text) !== null).length, comments.length),
  ],
  [
    "texts of cli and console with one",
    formatShare(texts.filter(({ text }) => findDialect(text) !== null).length, texts.length),
  ],
  [
    "test names with one",
    formatShare(names.filter(({ text }) => findDialectInComment(text) !== null).length, names.length),
  ],
];

for (const [label, value] of rows) console.log(`${label.padEnd(40)} ${value}`);
