// The repositories of a worker on disk: a bare mirror that only the service writes, and worktrees whose repositories borrow its objects.
import { dirname, join } from "node:path";
import { nullIfMissing, openDirectory } from "../../base/files/open_directory.ts";
import { removePlain } from "../../base/files/plain_file.ts";
import { removeTree } from "../../base/files/tree_removal.ts";
import { readGit, runGit } from "./git.ts";
import { fetchRefs, findDefaultBranch, listRemoteRefs, type Remote } from "./remote.ts";
import { GitError } from "./git_error.ts";

/** The tracking branch of the remote repository. */
function getRemoteRef(branch: string): string {
  return `refs/remotes/origin/${branch}`;
}

/** The start of a worktree. */
interface WorktreeStart {
  branch: string;
  /** The commit that it checks out. */
  commit: string;
  /** The branch of the remote repository, and its commit. */
  base: string;
  baseCommit: string;
  /** Name and address of the author of its commits. */
  author: { name: string; email: string };
  /** The user of the box that works there, or null. */
  owner: { uid: number; gid: number } | null;
  /** The umask of its files. */
  umask: number;
}

/** Opens mirrors one after another for each worker. The first use after a start removes what a kill has left. */
export class Mirrors {
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #cleaned = new Set<string>();

  /** Runs `work` on a mirror, which this creates. */
  use<T>(mirror: string, work: (mirror: string) => Promise<T>): Promise<T> {
    const before = this.#last.get(mirror) ?? Promise.resolve();
    const done = before.catch(() => {}).then(async () => {
      await this.#prepare(mirror);
      return await work(mirror);
    });
    this.#last.set(mirror, done);
    void done.catch(() => {}).then(() => {
      if (this.#last.get(mirror) === done) this.#last.delete(mirror);
    });
    return done;
  }

  async #prepare(mirror: string): Promise<void> {
    if (this.#cleaned.has(mirror) && await exists(join(mirror, "HEAD"))) return;
    const top = dirname(mirror);
    await Deno.mkdir(join(top, "work"), { recursive: true, mode: 0o755 });
    for await (const { name } of Deno.readDir(top)) {
      if (name.startsWith(".new")) await removeTree({ root: top, path: join(top, name) });
    }
    const work = join(top, "work");
    for await (const { name } of Deno.readDir(work)) {
      if (name.startsWith(".new") || name.startsWith(".old")) {
        await removeTree({ root: work, path: join(work, name) });
      }
    }
    if (await isDirectory(mirror)) {
      await removeLeftovers(mirror);
      // Repairs an emptied one, and changes no other.
      await runGit({ args: ["init", "--quiet", "--bare", "--shared=all", "--template=", mirror] });
    } else {
      const made = join(top, `.new-${crypto.randomUUID()}`);
      await runGit({ args: ["init", "--quiet", "--bare", "--shared=all", "--template=", made] });
      await Deno.rename(made, mirror);
    }
    this.#cleaned.add(mirror);
  }
}

// Only the service writes here, and one process at a time, so every lock is left over.
async function removeLeftovers(folder: string): Promise<void> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) await removeLeftovers(path);
    else if (entry.name.endsWith(".lock") || /^(tmp_|\.tmp-)/.test(entry.name)) {
      await Deno.remove(path).catch(() => {});
    }
  }
}

/**
 * Fetches the base branch, the default branch of the remote repository when `wanted` is undefined. Returns its name and commit. Throws
 * GitError.
 */
export async function fetchBase(
  mirror: string,
  remote: Remote,
  wanted: string | undefined,
  signal?: AbortSignal,
): Promise<{ base: string; commit: string }> {
  const extras = signal === undefined ? {} : { signal };
  const base = wanted ?? await findDefaultBranch(remote, extras);
  if (base === null) {
    await checkHasBranch(remote, extras);
    throw new GitError("unknown_ref", "the repository names no default branch. Set repo.base");
  }
  try {
    await fetchRefs(mirror, remote, [`+refs/heads/${base}:${getRemoteRef(base)}`], extras);
  } catch (error) {
    if (!(error instanceof GitError) || error.failure !== "unknown_ref") throw error;
    await checkHasBranch(remote, extras);
    throw new GitError("unknown_ref", `the repository has no branch ${base}. Set repo.base to another one`);
  }
  const commit = await findCommit(mirror, getRemoteRef(base));
  if (commit === null) throw new GitError("failed", `the branch ${base} is no commit`);
  return { base, commit };
}

async function checkHasBranch(remote: Remote, extras: { signal?: AbortSignal }): Promise<void> {
  const heads = await listRemoteRefs(remote, ["refs/heads/*"], extras);
  if (heads.size > 0) return;
  throw new GitError("unknown_ref", "the repository is empty. Push a first commit to it");
}

/** Returns the commit of a ref or null. */
export async function findCommit(gitDir: string, ref: string): Promise<string | null> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`];
  return await readGit({ args, gitDir, codes: [1, 128] }) || null;
}

/** Whether a commit is in the history of another one. False for a commit that the mirror does not have. */
export async function isAncestor(gitDir: string, commit: string, of: string): Promise<boolean> {
  const { code } = await runGit({
    args: ["merge-base", "--is-ancestor", commit, of],
    gitDir,
    codes: [1, 128],
  });
  return code === 0;
}

/** Moves a branch of the mirror. With `before`, only from there; "" means that it must not exist. Throws GitError. */
export async function setBranch(
  mirror: string,
  branch: string,
  commit: string,
  before?: string,
): Promise<void> {
  const zero = "0".repeat(40);
  const old = before === undefined ? [] : [before === "" ? zero : before];
  await runGit({ args: ["update-ref", `refs/heads/${branch}`, commit, ...old], gitDir: mirror });
}

/** Deletes a branch of the mirror. Its objects stay. */
export async function deleteBranch(mirror: string, branch: string): Promise<void> {
  await runGit({ args: ["update-ref", "-d", `refs/heads/${branch}`], gitDir: mirror });
}

const PACK_TIMEOUT_MS = 10 * 60_000;

/**
 * Joins loose objects and small packs when there are many. Removes no object, because worktrees borrow them. Other commands may use the
 * mirror meanwhile. Throws GitError.
 */
export async function packMirror(mirror: string, signal: AbortSignal): Promise<void> {
  const tasks = ["--task=loose-objects", "--task=incremental-repack"];
  const args = ["maintenance", "run", "--auto", "--quiet", ...tasks];
  await runGit({ args, gitDir: mirror, signal, timeoutMs: PACK_TIMEOUT_MS });
}

/** Creates a worktree, whole or not at all. Throws GitError. */
export async function createWorktree(mirror: string, path: string, start: WorktreeStart): Promise<void> {
  const { branch, commit, base, baseCommit, author, owner, umask } = start;
  const made = join(dirname(path), `.new-${crypto.randomUUID()}`);
  const gitDir = join(made, ".git");
  try {
    await runGit({ args: ["init", "--quiet", "--template=", `--initial-branch=${branch}`, made], umask });
    await Deno.mkdir(join(gitDir, "objects/info"), { recursive: true });
    await Deno.writeTextFile(join(gitDir, "objects/info/alternates"), `${join(mirror, "objects")}\n`);
    for (
      const [name, value] of [["user.name", author.name], ["user.email", author.email], ["gc.auto", "0"]]
    ) {
      await runGit({ args: ["config", name ?? "", value ?? ""], gitDir });
    }
    await runGit({ args: ["update-ref", getRemoteRef(base), baseCommit], gitDir });
    await runGit({ args: ["update-ref", `refs/heads/${branch}`, commit], gitDir });
    await runGit({ args: ["read-tree", "-m", "-u", commit], gitDir, workTree: made, umask });
    if (owner !== null) await giveTree(made, owner);
    await Deno.rename(made, path);
  } catch (error) {
    await removeTree({ root: dirname(path), path: made }).catch(() => {});
    throw error;
  }
}

// No run has seen these files yet. `chown` follows no link below its argument.
async function giveTree(path: string, { uid, gid }: { uid: number; gid: number }): Promise<void> {
  const { success } = await new Deno.Command("chown", {
    args: ["-R", "-h", `${uid}:${gid}`, path],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).output();
  if (!success) throw new Error(`cannot give ${path} to the user of boxes`);
}

const LOCKS_DEPTH_MAX = 8;

/** Removes the locks that a killed run has left in the repository of its worktree. Follows no link. */
export function removeLocks(worktree: string): void {
  const root = dirname(worktree);
  const visit = (path: string, depth: number) => {
    const names = nullIfMissing(() => {
      using folder = openDirectory({ root, path });
      return [...Deno.readDirSync(folder.address)].map(({ name, isDirectory }) => ({ name, isDirectory }));
    });
    for (const { name, isDirectory } of names ?? []) {
      if (name.endsWith(".lock")) removePlain({ root, path: join(path, name) });
      else if (isDirectory && depth > 0) visit(join(path, name), depth - 1);
    }
  };
  try {
    visit(join(worktree, ".git"), 0);
    visit(join(worktree, ".git/refs"), LOCKS_DEPTH_MAX);
  } catch (error) {
    // The end of the run makes an unusable repository anew.
    if (!(error instanceof Error)) throw error;
  }
}

/** Removes a worktree, so that no half of one stays at its path. */
export async function removeWorktree(path: string): Promise<void> {
  const gone = join(dirname(path), `.old-${crypto.randomUUID()}`);
  try {
    await Deno.rename(path, gone);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  await removeTree({ root: dirname(path), path: gone });
}

async function isDirectory(path: string): Promise<boolean> {
  return await Deno.lstat(path).then((info) => info.isDirectory, () => false);
}

async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}
