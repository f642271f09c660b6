// The branch of a tree in the mirror: made before its first run, and moved by each run (contract 26).
import type { Clock } from "../base/clock.ts";
import { faultPoint } from "../base/fault_point.ts";
import { createLogger } from "../base/log.ts";
import type { ChangeCounts } from "../domain/work/change_counts.ts";
import type { Tree } from "../domain/work/tree.ts";
import type { Repo } from "../domain/workers/repo.ts";
import type { Worker } from "../domain/workers/worker.ts";
import { GitError } from "../files/git/git_error.ts";
import { fetchBase, findCommit, setBranch } from "../files/git/mirror.ts";
import { fetchRefs, type Remote } from "../files/git/remote.ts";
import type { SecretStore } from "../store/account/secret_store.ts";
import type { Database, Statement } from "../store/db/database.ts";
import { record } from "../store/events/journal.ts";
import { findTree, startTree, type TreeEnd } from "../store/work/tree.ts";
import { findWorker } from "../store/workers/worker.ts";
import { resolveRemote } from "./remote_repo.ts";
import { SetupError } from "./variables.ts";

const log = createLogger("run");

export interface BranchOptions {
  db: Database;
  clock: Clock;
  secrets: SecretStore;
}

interface BranchRequest {
  tree: Tree;
  repo: Repo;
  mirror: string;
  signal: AbortSignal;
}

/** A branch before a run. */
export interface BranchStart {
  commit: string;
  /** The branch of the remote repository where it starts, and the commit. */
  base: string;
  baseCommit: string;
  /** The commit of the base for a new worktree. */
  worktreeBase: string;
  /** The last commit of the branch when it is neither here nor in the remote repository, or "". */
  lost: string;
}

/** Returns the tree of a run with the settings of its worker. Throws SetupError. */
export async function requireTree(
  db: Database,
  { worker_id, tree_id }: { worker_id: string; tree_id: string },
): Promise<{ tree: Tree; repo: Repo; isolation: Worker["isolation"] }> {
  const [tree, worker] = await Promise.all([findTree(db, tree_id), findWorker(db, worker_id)]);
  if (tree === null || worker === null || worker.repo === null) {
    throw new SetupError("Cannot prepare the worktree: its worker has no repository any longer.");
  }
  return { tree, repo: worker.repo, isolation: worker.isolation };
}

/** Returns the author of a worker's commits. */
export function buildAuthor(workerId: string, workerName: string): { name: string; email: string } {
  return { name: formatAuthorName(workerName), email: `${workerId}@svc.invalid` };
}

// Git drops these characters from the ends of a name and refuses an empty one.
function formatAuthorName(workerName: string): string {
  return /[^\s.,:;<>"'\\]/.test(workerName) ? workerName : "worker";
}

/** Makes the branch of a tree in the mirror unless it is there (`known`). Throws GitError and SetupError. */
export async function prepareBranch(
  options: BranchOptions,
  request: BranchRequest,
  known: string | null,
): Promise<BranchStart> {
  const { tree, repo, mirror } = request;
  let start: TreeStart = { base: tree.base, commit: tree.base_commit, pushed: null };
  if (known === null || tree.base_commit === "") {
    start = await fetchStart(await resolveRemote(options, tree.worker_id, repo), request, known === null);
    faultPoint("tree.fetched");
  }
  const commit = known ?? start.pushed ?? start.commit;
  if (known === null) await setBranch(mirror, tree.branch, commit, "");
  // The base of a branch that this machine does not have may be gone from the remote repository, too.
  const baseCommit = known === null ? start.commit : tree.base_commit || commit;
  const isLost = known === null && ![commit, tree.base_commit, ""].includes(tree.head_commit);
  if (isLost) {
    log.warning("The commit {commit} of {branch} is neither on this machine nor in its remote repository", {
      ...{ commit: tree.head_commit, branch: tree.branch },
    });
  }
  return {
    ...{ commit, base: start.base, baseCommit, worktreeBase: start.commit },
    lost: isLost ? tree.head_commit : "",
  };
}

/** Builds the statements that store where a branch starts. `removedAt` is null with a worktree on this machine. */
export function recordBranch(
  { clock }: BranchOptions,
  tree: Tree,
  { commit, base, baseCommit }: BranchStart,
  removedAt: number | null,
): Statement[] {
  const { id, worker_id, session_key, task_id, branch } = tree;
  const now = clock.now();
  const start = { base, base_commit: baseCommit, head_commit: commit, removed_at: removedAt };
  return [
    startTree(id, start, now),
    ...(tree.base_commit === ""
      ? [record(now, {
        ...{ kind: "tree.created", worker_id, session_key, task_id, data: { tree_id: id, branch } },
      })]
      : []),
  ];
}

/** The base of a branch, and the commit of the branch in the remote repository or null. */
interface TreeStart {
  base: string;
  commit: string;
  pushed: string | null;
}

async function fetchStart(
  remote: Remote,
  { tree, repo, mirror, signal }: BranchRequest,
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

/** Builds the changes of a run that has moved the branch from `before` to `head`. */
export function buildTreeEnd(
  { tree, repo }: Pick<BranchRequest, "tree" | "repo">,
  { before, head }: { before: string; head: string },
  { files_changed, insertions, deletions }: ChangeCounts,
): Omit<TreeEnd, "bytes" | "isClean"> {
  const push = head === before || head === tree.base_commit || repo.push === "never"
    ? "" as const
    : repo.push === "ask"
    ? "ask" as const
    : "wanted" as const;
  return {
    ...{ tree_id: tree.id, branch: tree.branch, base_commit: before, head_commit: head, push },
    ...{ files_changed, insertions, deletions },
  };
}
