// The changes of runs in the repository of their worker (contract 26).
import { conflict, notFound, ServiceError } from "../../domain/call/error.ts";
import { parseJson } from "../../domain/call/json.ts";
import type { Page } from "../../domain/call/page.ts";
import type { Execution } from "../../domain/work/execution.ts";
import { DIFF_MAX_BYTES, type DiffStat, getShortId, type Tree } from "../../domain/work/tree.ts";
import { getMirrorDir, getTreeDir } from "../../base/paths.ts";
import { maskText } from "../../engine/process/masked_text.ts";
import { buildMasks } from "../../engine/process/masks.ts";
import { readDiff, readStat } from "../../files/git/diff.ts";
import { GitError } from "../../files/git/git_error.ts";
import { deleteBranch, removeWorktree } from "../../files/git/mirror.ts";
import { readWorkerSecrets } from "../../store/account/worker_secrets.ts";
import { deleteTree, findTree, findTreeJson, listTrees, requestPush } from "../../store/work/tree.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { type Answer, answer, answerPage, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { waitFor } from "../call/long_poll.ts";
import type { Deps } from "../call/services.ts";
import { getExecution } from "./execution.ts";

/** How long a request waits for its push. */
const PUSHED_WITHIN_MS = 60_000;

type Since = "run" | "base";

interface Changes {
  execution: Execution;
  mirror: string;
  base: string;
  head: string;
}

/** Lists the branches and worktrees of a worker. Throws `not_found`. */
export async function listWorkerTrees(
  { db }: Deps<"db">,
  _call: Call,
  workerId: string,
  page: Page,
): Promise<Answer<Tree[]>> {
  if (await findWorker(db, workerId) === null) throw notFound("worker", workerId);
  return answerPage(await listTrees(db, workerId, page));
}

/** Reads the diff of a run, masked and cut after 2 MiB. Throws `not_found`, and `conflict` for a run without changes to show. */
export async function readChanges(
  deps: Deps<"db" | "paths" | "secrets">,
  call: Call,
  id: string,
  since: Since,
): Promise<string> {
  const changes = await findChanges(deps, call, id, since);
  const masks = buildMasks(await readWorkerSecrets(deps, changes.execution.worker_id));
  const { diff, isCut } = await readGitAnswer(id, readDiff(changes.mirror, changes, DIFF_MAX_BYTES));
  const text = maskText(masks, new TextDecoder().decode(diff));
  if (!isCut) return text;
  return `${text.slice(0, text.lastIndexOf("\n") + 1)}[diff cut: it is longer than 2 MiB]\n`;
}

/** Counts the changes of a run. Throws as readChanges() does. */
export async function readChangeStat(
  deps: Deps<"db" | "paths">,
  call: Call,
  id: string,
  since: Since,
): Promise<Answer<DiffStat>> {
  const { execution: { branch }, mirror, base, head } = await findChanges(deps, call, id, since);
  const stat = await readGitAnswer(id, readStat(mirror, { base, head }));
  return answer({ branch, base_commit: base, head_commit: head, ...stat });
}

async function findChanges(
  { db, paths }: Deps<"db" | "paths">,
  call: Call,
  id: string,
  since: Since,
): Promise<Changes> {
  const execution = parseJson((await getExecution({ db }, call, id)).json);
  const { worker_id, tree_id, base_commit, head_commit } = execution;
  if (tree_id === "") throw refuse("show", id, "its worker has no repository");
  if (head_commit === "") throw refuse("show", id, "its changes are not known before its end");
  const tree = since === "base" ? await findTree(db, tree_id) : null;
  if (since === "base" && tree === null) throw refuse("show", id, "its branch was discarded");
  return {
    execution,
    mirror: getMirrorDir(paths, worker_id),
    base: tree?.base_commit ?? base_commit,
    head: head_commit,
  };
}

async function readGitAnswer<T>(id: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof GitError) && !(error instanceof Deno.errors.NotFound)) throw error;
    throw refuse("show", id, error instanceof GitError ? error.message : "its repository is gone");
  }
}

/**
 * Pushes the branch of a run and returns after the push, or after 60 s while the push continues. Throws `not_found`, `conflict` without commits
 * to push, and `bad_gateway` with the reason when the push failed.
 */
export async function pushBranch(
  deps: Deps<"db" | "clock" | "wakeups" | "lifecycle">,
  call: Call,
  id: string,
): Promise<Answer<Tree>> {
  const { db, clock } = deps;
  const { execution, tree } = await findBranch(deps, call, id, "push");
  if (tree.head_commit === "" || tree.head_commit === tree.base_commit) {
    throw refuse("push", id, `${tree.branch} has no commits`);
  }
  const now = clock.now();
  const data = { tree_id: tree.id, branch: tree.branch };
  await db.writeOr([
    ...requestPush(tree.id, now),
    recordBy(call, now, { kind: "tree.push_requested", ...pickKeys(execution), data }),
  ], () => refuse("push", id, "its branch was discarded"));
  const limits = { timeoutMs: PUSHED_WITHIN_MS, signal: AbortSignal.timeout(PUSHED_WITHIN_MS) };
  return await waitFor(deps, call, limits, async (waiting) => {
    const json = requireFound(await findTreeJson(db, tree.id), "tree", tree.id);
    const { push, push_error } = parseJson(json);
    if (push === "failed") throw new ServiceError("bad_gateway", `Cannot push ${tree.branch}: ${push_error}`);
    if (push === "blocked") throw conflict(`Cannot push ${tree.branch}: ${push_error}`);
    return push !== "wanted" || waiting !== "on" ? { json } : null;
  });
}

/**
 * Deletes the branch of a run with its worktree here. The remote repository stays as it is. Throws `not_found`, and `conflict` while a run
 * works on the branch. Returns what was lost.
 */
export async function discardBranch(
  deps: Deps<"db" | "clock" | "paths" | "mirrors">,
  call: Call,
  id: string,
): Promise<Answer<Tree>> {
  const { db, clock, paths, mirrors } = deps;
  const { execution, tree } = await findBranch(deps, call, id, "discard");
  const { worker_id, branch, head_commit } = tree;
  const now = clock.now();
  const data = { tree_id: tree.id, branch, head_commit };
  await db.writeOr([
    ...deleteTree(tree.id, head_commit),
    recordBy(call, now, { kind: "tree.discarded", ...pickKeys(execution), data }),
  ], () => refuse("discard", id, `a run works on ${branch}. Cancel it first`));
  await mirrors.use(getMirrorDir(paths, worker_id), async (mirror) => {
    await removeWorktree(getTreeDir(paths, worker_id, getShortId(tree.id)));
    await deleteBranch(mirror, branch);
  });
  return answer(tree);
}

async function findBranch(
  { db }: Deps<"db">,
  call: Call,
  id: string,
  action: string,
): Promise<{ execution: Execution; tree: Tree }> {
  const execution = parseJson((await getExecution({ db }, call, id)).json);
  if (execution.tree_id === "") throw refuse(action, id, "its worker has no repository");
  const tree = await findTree(db, execution.tree_id);
  if (tree === null) throw refuse(action, id, "its branch was discarded");
  return { execution, tree };
}

function refuse(action: string, id: string, why: string): ServiceError {
  return conflict(`Cannot ${action} the changes of execution ${id}: ${why}`);
}

function pickKeys({ id, worker_id, session_key, task_id, message_id }: Execution) {
  return { execution_id: id, worker_id, session_key, task_id, message_id };
}
