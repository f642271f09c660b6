// Fetches the folder of a skill at a commit, and checks what is in it.
import { parse } from "yaml";
import { countBytes } from "../../base/bytes.ts";
import {
  findSkillNameFault,
  isCommit,
  isSafePath,
  SKILL_DESCRIPTION_MAX_CHARACTERS,
  SKILL_FILES_MAX,
  SKILL_MAX_BYTES,
  SKILL_PATH_MAX_BYTES,
  type SkillSource,
} from "../../domain/workers/skill.ts";
import { runGit } from "./git.ts";
import { GitError } from "./git_error.ts";
import { fetchRefs, listRemoteRefs } from "./remote.ts";

const SKILL_FETCH_MAX_MS = 60_000;
/** Limit of the files that a fetch writes. A commit has more than the folder of the skill. */
const SKILL_FETCH_MAX_BYTES = 512 * 1024 * 1024;
const ENTRIES_MAX_BYTES = 4 * 1024 * 1024;
const OBJECT_HEAD_MAX_BYTES = 200;
const SKILL_FILE = "SKILL.md";
const SKILL_FILE_MAX_BYTES = 1024 * 1024;
const FRONT_MATTER_MAX_BYTES = 16 * 1024;
const LFS_START = "version https://git-lfs.github.com/spec/";
const FETCHED = "refs/skill";

/** A file of a skill. */
export interface SkillFile {
  path: string;
  isExecutable: boolean;
  bytes: Uint8Array;
}

/** A fetched skill. */
interface FetchedSkill {
  name: string;
  description: string;
  /** Ordered by path. */
  files: SkillFile[];
}

/** The repository has no usable skill there. `field` is the part of the source that has the fault. */
export class SkillFault extends Error {
  readonly field: "url" | "ref" | "path";

  constructor(field: "url" | "ref" | "path", message: string) {
    super(message);
    this.name = "SkillFault";
    this.field = field;
  }
}

/**
 * Returns the commit that a branch, a tag or `HEAD` names in a remote repository. A full SHA names itself. Throws SkillFault.
 */
export async function resolveSkillRef(url: string, ref: string, signal?: AbortSignal): Promise<string> {
  if (isCommit(ref)) return ref;
  const names = ref === "HEAD" ? ["HEAD"] : [`refs/heads/${ref}`, `refs/tags/${ref}^{}`, `refs/tags/${ref}`];
  const refs = await listRemoteRefs({ address: url, credentials: null }, names, {
    timeoutMs: SKILL_FETCH_MAX_MS,
    ...(signal === undefined ? {} : { signal }),
  }).catch((error) => {
    throw describeFetchFault(error);
  });
  const found = names.map((name) => refs.get(name)).find((commit) => commit !== undefined);
  if (found !== undefined) return found;
  throw new SkillFault(
    "ref",
    `no branch and no tag of the repository is called ${ref}. Name one, or the full SHA of a commit`,
  );
}

/** Fetches a skill into an empty bare repository, and reads it. Throws SkillFault. */
export async function fetchSkill(gitDir: string, source: SkillSource): Promise<FetchedSkill> {
  const { url, ref } = source;
  try {
    await fetchRefs(gitDir, { address: url, credentials: null }, [`${ref}:${FETCHED}`], {
      timeoutMs: SKILL_FETCH_MAX_MS,
      fileMaxBytes: SKILL_FETCH_MAX_BYTES,
      isShallow: true,
      // Without this, git reads a mode with set-id bits as one without.
      config: ["fetch.fsck.badFilemode=error"],
    });
  } catch (error) {
    throw describeFetchFault(error);
  }
  return await readSkill(gitDir, source);
}

function describeFetchFault(error: unknown): unknown {
  if (!(error instanceof GitError)) return error;
  const { failure, message } = error;
  if (failure === "unknown_ref") {
    return new SkillFault(
      "ref",
      `the repository has no such commit, or does not give it: ${message}. Name a commit of a branch`,
    );
  }
  if (failure === "timeout") {
    return new SkillFault("url", `cannot be fetched within ${SKILL_FETCH_MAX_MS / 1_000} s. Try again`);
  }
  if (failure === "denied") {
    return new SkillFault(
      "url",
      `cannot be fetched: ${message}. Use a public repository, or ssh with the keys of the service's account`,
    );
  }
  if (/\bfsck\b/.test(message)) {
    return new SkillFault("ref", `has links, modes or names that git itself refuses: ${message}`);
  }
  if (/signal 25|too large/i.test(message)) {
    return new SkillFault(
      "url",
      `is too large: the commit has more than ${SKILL_FETCH_MAX_BYTES / 1024 / 1024} MiB`,
    );
  }
  return new SkillFault("url", `cannot be fetched: ${message}`);
}

interface Entry {
  path: string;
  mode: string;
  object: string;
  size: number;
}

async function readSkill(gitDir: string, { path }: SkillSource): Promise<FetchedSkill> {
  const entries = await listEntries(gitDir, path);
  const top = entries.find((entry) => entry.path === SKILL_FILE);
  if (top === undefined) {
    throw new SkillFault("path", `has no ${SKILL_FILE} at its top. Name the folder of the skill`);
  }
  checkEntries(entries);
  const files = await readFiles(gitDir, entries);
  const pointer = files.find(({ bytes }) => isPointer(bytes));
  if (pointer !== undefined) {
    throw new SkillFault("path", `has ${pointer.path}, a pointer of Git LFS. A skill has its files in git`);
  }
  const text = files.find((file) => file.path === SKILL_FILE)?.bytes ?? new Uint8Array();
  return { ...parseSkill(text), files };
}

async function listEntries(gitDir: string, path: string): Promise<Entry[]> {
  const { stdout, isCut, code } = await runGit({
    args: ["ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options", `${FETCHED}:${path}`],
    gitDir,
    outputMaxBytes: ENTRIES_MAX_BYTES,
    codes: [128],
  });
  if (code !== 0) throw new SkillFault("path", `the commit has no folder ${path}`);
  if (isCut) throw buildCountFault();
  const text = decode(stdout);
  if (text === null) throw new SkillFault("path", "has a file whose name is not UTF-8");
  return text.split("\0").filter((line) => line !== "").map((line): Entry => {
    const [info = "", ...rest] = line.split("\t");
    const [mode = "", , object = "", size = ""] = info.split(/ +/);
    return { path: rest.join("\t"), mode, object, size: Number(size) };
  }).sort((one, other) => one.path < other.path ? -1 : 1);
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function buildCountFault(): SkillFault {
  return new SkillFault("path", `has more than ${SKILL_FILES_MAX} files. Name a smaller folder`);
}

const KINDS: Record<string, string> = {
  "120000": "a symbolic link. A skill has files only",
  "160000": "a submodule. A skill has its files in its own repository",
};

function checkEntries(entries: readonly Entry[]): void {
  if (entries.length > SKILL_FILES_MAX) throw buildCountFault();
  for (const { path, mode } of entries) {
    if (mode !== "100644" && mode !== "100755") {
      throw new SkillFault("path", `has ${path}, ${KINDS[mode] ?? `a file with the mode ${mode}`}`);
    }
    if (!isSafePath(path) || countBytes(path) > SKILL_PATH_MAX_BYTES) {
      throw new SkillFault(
        "path",
        `has a file with an unsafe name: ${JSON.stringify(path.slice(0, 200))}. Rename it in the repository`,
      );
    }
  }
  if (entries.reduce((sum, { size }) => sum + size, 0) > SKILL_MAX_BYTES) {
    throw new SkillFault("path", `has more than ${SKILL_MAX_BYTES / 1024 / 1024} MiB. Name a smaller folder`);
  }
}

async function readFiles(gitDir: string, entries: readonly Entry[]): Promise<SkillFile[]> {
  const { stdout } = await runGit({
    args: ["cat-file", "--batch"],
    gitDir,
    stdin: entries.map(({ object }) => `${object}\n`).join(""),
    outputMaxBytes: SKILL_MAX_BYTES + entries.length * OBJECT_HEAD_MAX_BYTES,
  });
  let at = 0;
  return entries.map(({ path, mode, size }) => {
    at = stdout.indexOf(10, at) + 1;
    const bytes = stdout.subarray(at, at + size);
    if (bytes.length !== size) throw new Error(`git has not returned all of ${path}`);
    at += size + 1;
    return { path, isExecutable: mode === "100755", bytes };
  });
}

function isPointer(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes.subarray(0, LFS_START.length)) === LFS_START;
}

// The text between two lines of hyphens at the start of the file.
const FRONT_MATTER = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(\r?\n|$)/;

function parseSkill(bytes: Uint8Array): { name: string; description: string } {
  const refuse = (reason: string) => new SkillFault("path", `its ${SKILL_FILE} ${reason}`);
  const text = decode(bytes);
  if (text === null) throw refuse("is not UTF-8");
  if (bytes.length > SKILL_FILE_MAX_BYTES) throw refuse(`has more than ${SKILL_FILE_MAX_BYTES} bytes`);
  const [, matter] = FRONT_MATTER.exec(text) ?? [];
  if (matter === undefined || countBytes(matter) > FRONT_MATTER_MAX_BYTES) {
    throw refuse("must start with a front matter between two lines ---, with name and description");
  }
  const { name, description } = parseMatter(matter, refuse);
  if (typeof name !== "string") throw refuse("has no name in its front matter");
  const fault = findSkillNameFault(name);
  if (fault !== null) throw refuse(`has the name ${JSON.stringify(name.slice(0, 100))}, which ${fault}`);
  if (typeof description !== "string" || description.trim() === "") {
    throw refuse("has no description in its front matter");
  }
  const words = description.trim().replaceAll(/[\s\p{Cc}]+/gu, " ");
  if (words.length > SKILL_DESCRIPTION_MAX_CHARACTERS) {
    throw refuse(`has a description with more than ${SKILL_DESCRIPTION_MAX_CHARACTERS} characters`);
  }
  return { name, description: words };
}

function parseMatter(
  matter: string,
  refuse: (reason: string) => SkillFault,
): { name?: unknown; description?: unknown } {
  let value: unknown;
  try {
    value = parse(matter, { prettyErrors: false });
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw refuse(`has a front matter that is not valid YAML: ${words.slice(0, 200)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse("has a front matter without name and description");
  }
  return value;
}
