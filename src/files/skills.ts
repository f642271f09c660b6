// The skills of workers on disk: one file per skill, named after the digest of its content.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { concatBytes } from "../base/bytes.ts";
import { faultPoint } from "../base/fault_point.ts";
import { nullIfMissing } from "../base/files/open_directory.ts";
import { readPlainBytes } from "../base/files/plain_file.ts";
import { removeTree } from "../base/files/tree_removal.ts";
import type { DataPaths } from "../base/paths.ts";
import {
  getSkillSource,
  isSameSource,
  type Skill,
  SKILL_MAX_BYTES,
  type SkillSource,
} from "../domain/workers/skill.ts";
import { readDiff, readStat, type Stat } from "./git/diff.ts";
import { runGit } from "./git/git.ts";
import { GitError } from "./git/git_error.ts";
import { fetchSkill, SkillFault, type SkillFile } from "./git/skill_tree.ts";

/** Skills that this process has fetched lately. */
const RECENT_SKILLS_MAX = 200;
const FILE_LIST_MAX_BYTES = 2 * 1024 * 1024;
/** A diff of two skills. */
const SKILL_DIFF_MAX_BYTES = 2 * 1024 * 1024;
const NEW = ".new-";

/** The changes from one skill to another. */
interface SkillDiff {
  stat: Stat;
  diff: string;
  /** Whether the diff was cut. */
  isCut: boolean;
}

/** Fetches and keeps skills. A kept file counts only when its content has the digest of its row in the database. */
export class SkillStore {
  readonly #root: string;
  readonly #fetches = new Map<string, Promise<Skill>>();
  /** By their source. */
  readonly #recent = new LRUCache<string, Skill>({ max: RECENT_SKILLS_MAX });
  #prepared: Promise<void> | null = null;

  constructor({ skills }: DataPaths) {
    this.#root = skills;
  }

  /** Fetches the skill of a source, unless this process has fetched it lately, and keeps its files. Throws SkillFault. */
  async keep(source: SkillSource): Promise<Skill> {
    const found = this.#recent.get(buildKey(source));
    if (found !== undefined && this.#load(found.digest) !== null) {
      // The maintenance removes unused files by their age.
      const now = new Date();
      await Deno.utime(this.#getPath(found.digest), now, now).catch(() => {});
      return found;
    }
    return await this.#fetchOnce(source);
  }

  /**
   * Reads the files of a skill. Fetches it again when the kept file is missing or has other content. Throws SkillFault, also when the
   * repository gives other content than that which was checked.
   */
  async read(skill: Skill): Promise<SkillFile[]> {
    const kept = this.#load(skill.digest);
    if (kept !== null) return kept;
    const again = await this.#fetchOnce(getSkillSource(skill));
    const files = again.digest === skill.digest ? this.#load(skill.digest) : null;
    if (files !== null) return files;
    throw new SkillFault("ref", "has other files than those that were checked. Add it again");
  }

  /** Compares a skill with another one, or with none. Throws SkillFault. */
  async compare(before: Skill | null, after: Skill): Promise<SkillDiff> {
    const old = before === null ? [] : await this.read(before);
    const next = await this.read(after);
    return await this.#useFolder(async (folder) => {
      const gitDir = await createRepository(folder);
      const stream = join(folder, "import");
      await Deno.writeFile(stream, concatBytes([formatCommit("old", old), formatCommit("new", next)]), {
        mode: 0o600,
      });
      await runGit({ args: ["fast-import", "--quiet"], gitDir, stdin: { file: stream } });
      const range = { base: "refs/heads/old", head: "refs/heads/new" };
      const stat = await readStat(gitDir, range);
      const { diff, isCut } = await readDiff(gitDir, range, SKILL_DIFF_MAX_BYTES);
      return { stat, diff: new TextDecoder().decode(diff), isCut };
    });
  }

  /** Removes what no worker needs and a kill has left, if it is older than `before` (Unix ms). */
  async removeUnused(used: ReadonlySet<string>, before: number): Promise<void> {
    for (const { name } of nullIfMissing(() => [...Deno.readDirSync(this.#root)]) ?? []) {
      if (used.has(name)) continue;
      const path = this.#getPath(name);
      const info = nullIfMissing(() => Deno.lstatSync(path));
      if ((info?.mtime?.getTime() ?? Infinity) < before) await removeTree({ root: this.#root, path });
    }
  }

  #getPath(digest: string): string {
    return join(this.#root, digest);
  }

  /** Returns the files of a kept skill, or null when the file is missing or has other content. */
  #load(digest: string): SkillFile[] | null {
    try {
      const place = { root: this.#root, path: this.#getPath(digest) };
      const bytes = nullIfMissing(() => readPlainBytes(place, SKILL_MAX_BYTES + FILE_LIST_MAX_BYTES));
      const files = bytes === null ? null : unpack(bytes);
      return files !== null && computeDigest(files) === digest ? files : null;
    } catch {
      // An agent without a box may have put anything there.
      return null;
    }
  }

  async #fetchOnce(source: SkillSource): Promise<Skill> {
    const key = buildKey(source);
    const running = this.#fetches.get(key) ?? this.#fetch(source).finally(() => this.#fetches.delete(key));
    this.#fetches.set(key, running);
    return await running;
  }

  async #fetch(source: SkillSource): Promise<Skill> {
    return await this.#useFolder(async (folder) => {
      const { name, description, files } = await fetchSkill(await createRepository(folder), source);
      faultPoint("skill.fetched");
      const digest = computeDigest(files);
      const made = join(folder, "skill");
      await Deno.writeFile(made, pack(files), { mode: 0o600, createNew: true });
      faultPoint("skill.written");
      const path = this.#getPath(digest);
      await removeTree({ root: this.#root, path });
      await Deno.rename(made, path);
      faultPoint("skill.kept");
      const skill = { ...source, name, description, digest };
      this.#recent.set(buildKey(source), skill);
      return skill;
    });
  }

  async #useFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
    this.#prepared ??= this.#prepare();
    await this.#prepared;
    const folder = join(this.#root, `${NEW}${crypto.randomUUID()}`);
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    try {
      return await use(folder);
    } catch (error) {
      if (error instanceof GitError) throw new SkillFault("url", `cannot be read: ${error.message}`);
      throw error;
    } finally {
      await removeTree({ root: this.#root, path: folder }).catch(() => {});
    }
  }

  // The first use after a start removes what a kill has left.
  async #prepare(): Promise<void> {
    await Deno.mkdir(this.#root, { recursive: true, mode: 0o700 });
    for await (const { name } of Deno.readDir(this.#root)) {
      if (name.startsWith(NEW)) await removeTree({ root: this.#root, path: this.#getPath(name) });
    }
  }
}

/** Returns the skill of a list that comes from this source, or null. */
export function findBySource(skills: readonly Skill[], source: SkillSource): Skill | null {
  return skills.find((one) => isSameSource(one, source)) ?? null;
}

function buildKey(source: SkillSource): string {
  return JSON.stringify([source.url, source.ref, source.path]);
}

async function createRepository(folder: string): Promise<string> {
  const gitDir = join(folder, "git");
  await runGit({ args: ["init", "--quiet", "--bare", "--template=", gitDir] });
  return gitDir;
}

/** Returns the SHA-256 of the names, modes and contents of files. */
function computeDigest(files: readonly SkillFile[]): string {
  const digest = createHash("sha256");
  for (const { path, isExecutable, bytes } of files) {
    const content = createHash("sha256").update(bytes).digest("hex");
    digest.update(`${content} ${isExecutable ? "755" : "644"} ${path}\n`);
  }
  return digest.digest("hex");
}

// A line of JSON lists the files, and their contents follow.
function pack(files: readonly SkillFile[]): Uint8Array {
  const list = files.map(({ path, isExecutable, bytes }) => [path, Number(isExecutable), bytes.length]);
  const head = new TextEncoder().encode(`${JSON.stringify(list)}\n`);
  return concatBytes([head, ...files.map(({ bytes }) => bytes)]);
}

function unpack(content: Uint8Array): SkillFile[] | null {
  const end = content.indexOf(10);
  const list = JSON.parse(new TextDecoder().decode(content.subarray(0, end))) as [string, number, number][];
  let at = end + 1;
  const files = list.map(([path, isExecutable, size]): SkillFile => {
    const bytes = content.subarray(at, at + size);
    at += size;
    return { path, isExecutable: isExecutable === 1, bytes };
  });
  return at === content.length ? files : null;
}

// A commit of one branch, as `git fast-import` reads it.
function formatCommit(branch: string, files: readonly SkillFile[]): Uint8Array {
  const encode = (text: string) => new TextEncoder().encode(text);
  const head = `commit refs/heads/${branch}\ncommitter svc <svc@svc.invalid> 0 +0000\ndata 0\n`;
  return concatBytes([
    encode(head),
    ...files.flatMap(({ path, isExecutable, bytes }) => [
      encode(`M ${isExecutable ? "100755" : "100644"} inline ${quotePath(path)}\ndata ${bytes.length}\n`),
      bytes,
      encode("\n"),
    ]),
  ]);
}

function quotePath(path: string): string {
  return `"${path.replaceAll(/["\\]/g, "\\$&")}"`;
}
