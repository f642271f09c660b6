// The changes between two commits of a mirror. Neither attributes nor settings of the repository take part.
import { readGit, runGit } from "./git.ts";

const PLAIN = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
const STAT_FILES_MAX = 2_000;
const STAT_MAX_BYTES = 8 * 1024 * 1024;

interface Range {
  base: string;
  head: string;
}

interface ChangedFile {
  path: string;
  /** null for a binary file. */
  insertions: number | null;
  deletions: number | null;
}

/** Counts of changed files and lines, and the first 2,000 files. */
export interface Stat {
  files_changed: number;
  insertions: number;
  deletions: number;
  files: ChangedFile[];
  truncated: boolean;
}

/** Reads a diff, cut at `maxBytes`. Throws GitError, for a commit that the mirror does not have. */
export async function readDiff(
  gitDir: string,
  { base, head }: Range,
  maxBytes: number,
): Promise<{ diff: Uint8Array; isCut: boolean }> {
  const args = ["diff", ...PLAIN, "--full-index", "--end-of-options", base, head];
  const { stdout, isCut } = await runGit({ args, gitDir, outputMaxBytes: maxBytes });
  return { diff: stdout, isCut };
}

/** Counts the changes. */
export async function readStat(gitDir: string, { base, head }: Range): Promise<Stat> {
  const args = ["diff", ...PLAIN, "--numstat", "-z", "--end-of-options", base, head];
  const text = await readGit({ args, gitDir, outputMaxBytes: STAT_MAX_BYTES });
  const files = text.split("\0").filter((line) => line !== "").map((line): ChangedFile => {
    const [insertions = "", deletions = "", ...path] = line.split("\t");
    return { path: path.join("\t"), insertions: readCount(insertions), deletions: readCount(deletions) };
  });
  const sum = (name: "insertions" | "deletions") =>
    files.reduce((total, file) => total + (file[name] ?? 0), 0);
  return {
    files_changed: files.length,
    insertions: sum("insertions"),
    deletions: sum("deletions"),
    files: files.slice(0, STAT_FILES_MAX),
    truncated: files.length > STAT_FILES_MAX,
  };
}

const PATCHES_MAX_BYTES = 64 * 1024 * 1024;

/** Reads the texts of all commits between two: messages, authors and patches, also those that a later commit takes back. */
export async function readPatches(
  gitDir: string,
  { base, head }: Range,
): Promise<{ text: string; isCut: boolean }> {
  const args = ["log", "--patch", "--text", "--diff-merges=separate", ...PLAIN, "--format=%an%n%ae%n%B"];
  const range = ["--end-of-options", head, `^${base}`];
  const { stdout, isCut } = await runGit({
    args: [...args, ...range],
    gitDir,
    outputMaxBytes: PATCHES_MAX_BYTES,
  });
  return { text: new TextDecoder().decode(stdout), isCut };
}

function readCount(text: string): number | null {
  return /^\d+$/.test(text) ? Number(text) : null;
}
