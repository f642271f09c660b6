import { describe, expect, it } from "vitest";
import {
  findDialect,
  findDialectInComment,
  findUnknownFunctions,
  readComments,
  readIdentifiers,
  readTestNames,
  readUserTexts,
  type Text,
} from "../harness/house/language.ts";
import { findSubjectProblem } from "../../build/commit_msg.ts";

/** Allowed comments with a phrase of the dialect, per folder. A number may only fall. */
const COMMENTS_LEFT: Record<string, number> = {};

const FOLDERS = ["src", "cli", "console", "build", "bench", "test"];

const SUBJECTS_CHECKED = 20;

function formatPlace({ file, line, text }: Text): string {
  return `${file}:${line}: ${text.slice(0, 100)}`;
}

function findFolder(file: string): string {
  const [top = "", second = ""] = file.split("/");
  return second.includes(".") || second === "" ? top : `${top}/${second}`;
}

describe("texts (CONTRIBUTING.md)", () => {
  it("of the command line and the console have no phrase of the dialect", () => {
    const found = readUserTexts("main.ts", "cli", "console").filter(({ text }) => findDialect(text) !== null);
    expect(found.map(formatPlace)).toEqual([]);
  });

  it("of comments have no more phrases of the dialect than before, in any folder", () => {
    const counts = new Map<string, number>();
    for (const { file, text } of readComments("main.ts", ...FOLDERS)) {
      if (findDialectInComment(text) === null) continue;
      counts.set(findFolder(file), (counts.get(findFolder(file)) ?? 0) + 1);
    }
    expect([...counts].filter(([folder, found]) => found > (COMMENTS_LEFT[folder] ?? 0))).toEqual([]);
    expect(
      Object.entries(COMMENTS_LEFT).filter(([folder, left]) => (counts.get(folder) ?? 0) < left),
      "there are fewer now: lower the number",
    ).toEqual([]);
  });

  it("of test names have no phrase of the dialect", () => {
    const found = readTestNames("test").filter(({ text }) => findDialectInComment(text) !== null);
    expect(found.map(formatPlace)).toEqual([]);
  });

  it("of comments and test names name only functions that exist", () => {
    const code = readIdentifiers("main.ts", ...FOLDERS);
    const texts = [...readComments("main.ts", ...FOLDERS), ...readTestNames("test")];
    expect(texts.filter(({ text }) => findUnknownFunctions(text, code).length > 0).map(formatPlace)).toEqual(
      [],
    );
  });

  it("of the last commits have the form of CONTRIBUTING.md", () => {
    const { stdout } = new Deno.Command("git", { args: ["log", "--format=%s", "-n", `${SUBJECTS_CHECKED}`] })
      .outputSync();
    const subjects = new TextDecoder().decode(stdout).split("\n").filter((subject) => subject !== "");
    expect(subjects.filter((subject) => findSubjectProblem(subject) !== "")).toEqual([]);
  });
});
