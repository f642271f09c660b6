// The worktree of a run: made before it, and its changes taken over after it (contract 26).
import { join } from "node:path";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getMirrorDir } from "../../base/paths.ts";
import type { Repo } from "../../domain/workers/repo.ts";
import { type IsolationConfig, resolveBox } from "../../domain/workers/isolation.ts";
import type { Tree } from "../../domain/work/tree.ts";
import { findBoxUser } from "../../engine/process/box_user.ts";
import { GitError } from "../../files/git/git_error.ts";
import { createWorktree, findCommit, type Mirrors, removeLocks } from "../../files/git/mirror.ts";
import { sumTreeBytes, type TreeEnd } from "../../store/work/tree.ts";
import {
  type BranchOptions,
  type BranchStart,
  buildAuthor,
  buildTreeEnd,
  prepareBranch,
  recordBranch,
  requireTree,
} from "../branches.ts";
import type { Claim } from "../claim.ts";
import { SetupError } from "../variables.ts";
import { type TakeOverContext, takeOverRun } from "./take_over.ts";

const log = createLogger("executor");

export interface WorkspaceOptions extends BranchOptions {
  paths: DataPaths;
  mirrors: Mirrors;
  isolation: IsolationConfig;
  /** The umask that the service was started with. */
  umask: number;
  config: { limits: { max_tree_bytes: number } };
}

/** The worktree of a run. */
export interface Workspace {
  /** The directory of objects that the repository in the worktree borrows. */
  objects: string;
  /** Returns undefined on a runner, which sends its commits to the service. */
  takeOver: (run: TakeOverContext) => Promise<TreeEnd | undefined>;
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
  const { tree, repo, isolation } = await requireTree(db, { worker_id, tree_id });
  const author = buildAuthor(worker_id, worker_name);
  const mirror = getMirrorDir(paths, worker_id);
  try {
    const { commit: before, lost } = await mirrors.use(
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
    const place = { tree, repo, mirror, author, before, lost };
    return {
      objects: join(mirror, "objects"),
      takeOver: (run) => takeOver(claim, place, run),
    };
  } catch (error) {
    if (error instanceof GitError) throw new SetupError(`Cannot prepare the worktree: ${error.message}.`);
    throw error;
  }
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

async function prepareTree(
  options: WorkspaceOptions,
  request: TreeRequest,
): Promise<Pick<BranchStart, "commit" | "lost">> {
  const { db, umask } = options;
  const { tree, mirror, path, author, isBoxed } = request;
  const { branch } = tree;
  const known = await findCommit(mirror, `refs/heads/${branch}`);
  const exists = await Deno.lstat(path).then(({ isDirectory }) => isDirectory, () => false);
  if (exists) removeLocks(path);
  if (known !== null && exists && tree.base_commit !== "") return { commit: known, lost: "" };
  await checkSize(options);
  const start = await prepareBranch(options, request, known);
  const { commit, base, worktreeBase: baseCommit } = start;
  if (!exists) {
    const owner = isBoxed && Deno.uid() === 0 && options.isolation.box.user !== ""
      ? await findBoxUser(options.isolation.box.user)
      : null;
    await createWorktree(mirror, path, { branch, commit, base, baseCommit, author, owner, umask });
    faultPoint("tree.made");
  }
  await db.write(recordBranch(options, tree, start, null));
  faultPoint("tree.started");
  return start;
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
  /** The last commit of the branch when it is lost, or "". */
  lost: string;
}

// The changes of a run stay in its worktree when they cannot be taken over. The next run there takes them over.
async function takeOver({ execution }: Claim, place: TreePlace, run: TakeOverContext): Promise<TreeEnd> {
  const { execution_id: executionId, instruction } = execution;
  const { tree, mirror, author, before, lost } = place;
  const { branch } = tree;
  if (lost !== "") {
    run.note(
      `[the earlier commits of ${branch}, the last one ${lost}, are lost: this run started from ${before}]`,
    );
  }
  try {
    const { head, bytes, ...counts } = await takeOverRun(run, {
      ...{ mirror, branch, known: before, author, instruction, executionId },
    });
    return { ...buildTreeEnd(place, { before, head }, counts), bytes, isClean: true };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    log.warning("Cannot take over the changes of execution {id}: {error}", { id: executionId, error });
    run.note(`[its changes stay in the worktree and are not in ${branch}: ${words}]`);
    return {
      ...{ tree_id: tree.id, branch, base_commit: before, head_commit: before, bytes: tree.bytes, push: "" },
      ...{ files_changed: 0, insertions: 0, deletions: 0 },
      isClean: false,
    };
  }
}
