// The worktree of a run: made before it, and its changes taken over after it (contract 26).
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getMirrorDir } from "../../base/paths.ts";
import { formatFiles } from "../../domain/work/change_counts.ts";
import type { Repo } from "../../domain/workers/repo.ts";
import { type IsolationConfig, resolveBox } from "../../domain/workers/isolation.ts";
import type { Tree } from "../../domain/work/tree.ts";
import { findBoxUser } from "../../engine/process/box_user.ts";
import { readStat } from "../../files/git/diff.ts";
import { runGit } from "../../files/git/git.ts";
import { GitError } from "../../files/git/git_error.ts";
import {
  createWorktree,
  fetchBase,
  findCommit,
  type Mirrors,
  removeLocks,
  setBranch,
} from "../../files/git/mirror.ts";
import { fetchRefs, type Remote } from "../../files/git/remote.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import type { Database } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { findTree, startTree, sumTreeBytes, type TreeEnd } from "../../store/work/tree.ts";
import { findWorker } from "../../store/workers/worker.ts";
import type { Claim } from "../claim.ts";
import { resolveRemote } from "../remote_repo.ts";
import { SetupError } from "../variables.ts";
import type { CommandContext } from "./command.ts";
import { type TakenCommits, takeOverCommits } from "./take_over.ts";

const log = createLogger("executor");
/** Size of the new commits of one run. */
const PACK_MAX_BYTES = 2 * 1024 * 1024 * 1024;

export interface WorkspaceOptions {
  db: Database;
  clock: Clock;
  paths: DataPaths;
  secrets: SecretStore;
  mirrors: Mirrors;
  isolation: IsolationConfig;
  /** The umask that the service was started with. */
  umask: number;
  config: { limits: { max_tree_bytes: number } };
}

/** Where and how the changes of a run are taken over. */
type TakeOverContext = Omit<CommandContext, "signal" | "onStart"> & {
  tempDir: string;
  /** Writes a line of the run's log. */
  note: (line: string) => void;
};

/** The worktree of a run. */
export interface Workspace {
  /** The directory of objects that the repository in the worktree borrows. */
  objects: string;
  takeOver: (run: TakeOverContext) => Promise<TreeEnd>;
}

/** Opens a workspace like openWorkspace(), and returns the error of settings that rule it out. */
export async function tryOpenWorkspace(
  options: WorkspaceOptions,
  claim: Claim,
  signal: AbortSignal,
): Promise<Workspace | SetupError | null> {
  try {
    return await openWorkspace(options, claim, signal);
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
}

/**
 * Makes the worktree of a claimed run, or finds the one of its conversation or task. Returns null for a worker without a repository.
 * Throws SetupError with the reason in plain words.
 */
async function openWorkspace(
  options: WorkspaceOptions,
  claim: Claim,
  signal: AbortSignal,
): Promise<Workspace | null> {
  const { db, paths, mirrors } = options;
  const { worker_id, worker_name, tree_id = "" } = claim.execution;
  if (tree_id === "") return null;
  const [tree, worker] = await Promise.all([findTree(db, tree_id), findWorker(db, worker_id)]);
  if (tree === null || worker === null || worker.repo === null) {
    throw new SetupError("Cannot prepare the worktree: its worker has no repository any longer.");
  }
  const { repo, isolation } = worker;
  const author = { name: formatAuthorName(worker_name), email: `${worker_id}@svc.invalid` };
  const mirror = getMirrorDir(paths, worker_id);
  try {
    const before = await mirrors.use(
      mirror,
      () =>
        prepareTree(options, {
          tree,
          repo,
          mirror,
          path: claim.workDir,
          signal,
          author,
          isBoxed: resolveBox(isolation, options.isolation) !== null,
        }),
    );
    const place = { tree, repo, mirror, author, before };
    return {
      objects: join(mirror, "objects"),
      takeOver: (run) => takeOver(claim, place, run),
    };
  } catch (error) {
    if (error instanceof GitError) throw new SetupError(`Cannot prepare the worktree: ${error.message}.`);
    throw error;
  }
}

// Git drops these characters from the ends of a name and refuses an empty one.
function formatAuthorName(workerName: string): string {
  return /[^\s.,:;<>"'\\]/.test(workerName) ? workerName : "worker";
}

interface TreeRequest {
  tree: Tree;
  repo: Repo;
  mirror: string;
  path: string;
  author: { name: string; email: string };
  isBoxed: boolean;
  signal: AbortSignal;
}

/** Returns the commit of the branch. */
async function prepareTree(options: WorkspaceOptions, request: TreeRequest): Promise<string> {
  const { db, clock, secrets, umask } = options;
  const { tree, repo, mirror, path, author, isBoxed } = request;
  const { id, worker_id, branch } = tree;
  const known = await findCommit(mirror, `refs/heads/${branch}`);
  const exists = await Deno.lstat(path).then(({ isDirectory }) => isDirectory, () => false);
  if (exists) removeLocks(path);
  if (known !== null && exists && tree.base_commit !== "") return known;
  await checkSize(options);
  let start: TreeStart = { base: tree.base, commit: tree.base_commit, pushed: null };
  if (known === null || tree.base_commit === "") {
    start = await fetchStart(await resolveRemote({ db, secrets }, worker_id, repo), request, known === null);
    faultPoint("tree.fetched");
  }
  const commit = known ?? start.pushed ?? start.commit;
  if (known === null) await setBranch(mirror, branch, commit, "");
  if (!exists) {
    const owner = isBoxed && Deno.uid() === 0 && options.isolation.box.user !== ""
      ? await findBoxUser(options.isolation.box.user)
      : null;
    const { base, commit: baseCommit } = start;
    await createWorktree(mirror, path, { branch, commit, base, baseCommit, author, owner, umask });
    faultPoint("tree.made");
  }
  // The base of a branch that this machine does not have may be gone from the remote repository, too.
  const baseCommit = known === null ? start.commit : tree.base_commit || commit;
  const keys = { worker_id, session_key: tree.session_key, task_id: tree.task_id };
  await db.write([
    startTree(id, { base: start.base, base_commit: baseCommit, head_commit: commit }, clock.now()),
    ...(tree.base_commit === ""
      ? [record(clock.now(), { kind: "tree.created", ...keys, data: { tree_id: id, branch } })]
      : []),
  ]);
  faultPoint("tree.started");
  return commit;
}

/** The base of a branch, and the commit of the branch in the remote repository or null. */
interface TreeStart {
  base: string;
  commit: string;
  pushed: string | null;
}

async function fetchStart(
  remote: Remote,
  { tree, repo, mirror, signal }: TreeRequest,
  isMissing: boolean,
): Promise<TreeStart> {
  const start = await fetchBase(mirror, remote, repo.base, signal);
  // After a takeover by another machine, or a restore, only the remote repository has what was pushed.
  const pushed = isMissing && tree.pushed_commit !== ""
    ? await fetchPushed(mirror, remote, tree.branch, signal)
    : null;
  return { ...start, pushed };
}

async function fetchPushed(
  mirror: string,
  remote: Remote,
  branch: string,
  signal: AbortSignal,
): Promise<string | null> {
  const ref = `refs/remotes/origin/${branch}`;
  try {
    await fetchRefs(mirror, remote, [`+refs/heads/${branch}:${ref}`], { signal });
  } catch (error) {
    if (error instanceof GitError && error.failure === "unknown_ref") return null;
    throw error;
  }
  return await findCommit(mirror, ref);
}

async function checkSize({ db, config: { limits } }: WorkspaceOptions): Promise<void> {
  const bytes = await sumTreeBytes(db);
  if (bytes < limits.max_tree_bytes) return;
  throw new SetupError(
    `Cannot prepare the worktree: the worktrees use ${bytes} bytes, and limits.max_tree_bytes is ${limits.max_tree_bytes}. ` +
      "Discard some with svc ctl execution discard, or raise the limit.",
  );
}

interface TreePlace {
  tree: Tree;
  repo: Repo;
  mirror: string;
  author: { name: string; email: string };
  /** The commit of the branch before the run. */
  before: string;
}

// The changes of a run stay in its worktree when they cannot be taken over. The next run there takes them over.
async function takeOver(
  { execution }: Claim,
  { tree, repo, mirror, author, before }: TreePlace,
  run: TakeOverContext,
): Promise<TreeEnd> {
  const { execution_id: executionId, instruction } = execution;
  const { branch } = tree;
  const pack = join(mirror, `tmp_pack-${executionId}`);
  try {
    const taken = await (async () => {
      using file = await Deno.open(pack, { write: true, create: true, truncate: true, mode: 0o600 });
      let size = 0;
      const taken = await takeOverCommits(run, {
        ...{ mirror, branch, known: before, author, instruction, executionId },
        onPack(chunk) {
          size += chunk.length;
          if (size > PACK_MAX_BYTES) return;
          for (let at = 0; at < chunk.length;) at += file.writeSync(chunk.subarray(at));
        },
      });
      if (size > PACK_MAX_BYTES) throw new Error("its commits have more than 2 GiB");
      faultPoint("tree.packed");
      if (taken.head !== before) {
        await importCommits(mirror, { pack, size, branch, before, head: taken.head });
      }
      return taken;
    })();
    const { head, bytes } = taken;
    const { files_changed, insertions, deletions } = await readStat(mirror, { base: before, head });
    run.note(formatChanges(branch, taken, files_changed));
    const push = head === before || head === tree.base_commit || repo.push === "never"
      ? "" as const
      : repo.push === "ask"
      ? "ask" as const
      : "wanted" as const;
    return {
      ...{ tree_id: tree.id, branch, base_commit: before, head_commit: head, bytes, push },
      ...{ files_changed, insertions, deletions },
      isClean: true,
    };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    log.warning("Cannot take over the changes of execution {id}: {error}", { id: executionId, error });
    run.note(`[its changes stay in the worktree and are not in ${branch}: ${words}]`);
    return {
      ...{ tree_id: tree.id, branch, base_commit: before, head_commit: before, bytes: tree.bytes, push: "" },
      ...{ files_changed: 0, insertions: 0, deletions: 0 },
      isClean: false,
    };
  } finally {
    await Deno.remove(pack).catch(() => {});
  }
}

// Takes only objects from the run's repository, and checks that no object is missing.
async function importCommits(
  mirror: string,
  { pack, size, branch, before, head }: {
    pack: string;
    size: number;
    branch: string;
    before: string;
    head: string;
  },
): Promise<void> {
  if (size > 0) {
    await runGit({ args: ["index-pack", "--stdin", "--fix-thin"], gitDir: mirror, stdin: { file: pack } });
  }
  faultPoint("tree.imported");
  await runGit({ args: ["rev-list", "--objects", "--quiet", head, "--not", "--all"], gitDir: mirror });
  await setBranch(mirror, branch, head, before);
  faultPoint("tree.moved");
}

function formatChanges(branch: string, { isCommitted, skipped }: TakenCommits, files: number): string {
  const changed = files === 0 ? `no changes on ${branch}` : `${formatFiles(files)} changed on ${branch}`;
  return [
    `[${changed}${isCommitted ? "; the service committed what was left" : ""}]`,
    ...skipped.map((path) => `[not committed: ${path}, a repository or a file over 10 MiB]`),
  ].join("\n");
}
