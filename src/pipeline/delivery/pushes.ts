// Push of a tree: ask -> asked -> wanted -> '' (pushed, or denied), failed or blocked.
import { faultPoint } from "../../base/fault_point.ts";
import { createId } from "../../base/id.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getMirrorDir } from "../../base/paths.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { computeExpiry } from "../../domain/chat/message.ts";
import { ALLOW, DENY } from "../../domain/call/vocabulary.ts";
import { formatChangeCounts, formatFiles } from "../../domain/work/change_counts.ts";
import { formatApproval } from "../../domain/work/approval.ts";
import { maskText } from "../../engine/process/masked_text.ts";
import { escapeInvisible } from "../../engine/protocol/approvals.ts";
import { buildMasks } from "../../engine/process/masks.ts";
import { readPatches, readStat, type Stat } from "../../files/git/diff.ts";
import { GitError } from "../../files/git/git_error.ts";
import { isAncestor, type Mirrors } from "../../files/git/mirror.ts";
import { listRemoteRefs, pushBranch, type Remote } from "../../files/git/remote.ts";
import { resolveRemote } from "../../run/remote_repo.ts";
import { SetupError } from "../../run/variables.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import { readWorkerSecrets } from "../../store/account/worker_secrets.ts";
import { record } from "../../store/events/journal.ts";
import { openQuestion } from "../../store/chat/open_question.ts";
import type { NewQuestion } from "../../store/work/question.ts";
import { withdrawQuestions } from "../../store/work/question_transitions.ts";
import {
  type DuePush,
  hasAskedPush,
  listDuePushes,
  markPushAsked,
  markPushed,
  markPushFailed,
  takePushAnswers,
} from "../../store/work/tree.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("push");
const PUSHES_PER_ROUND = 4;
const PUSH_TIMEOUT_MS = 2 * 60_000;
const STALLED_MS = 10 * 60_000;
const QUESTION_TIMEOUT_MS = 24 * 60 * 60_000;
const FILES_SHOWN_MAX = 20;
/** The tool name of the question. */
const TOOL = "git push";

interface PushOptions extends StageServices {
  paths: DataPaths;
  secrets: SecretStore;
  mirrors: Mirrors;
}

/** A push that the service does not even try. */
class BlockedError extends Error {}

/** Creates the stage that asks about pushes and pushes branches. */
export function createPushes(options: PushOptions): Stage {
  const { db } = options;
  return new Stage(options, { name: "push", wakeup: WAKEUP.push, stalledMs: STALLED_MS, step });

  async function step(): Promise<number> {
    if (await hasAskedPush(db)) await db.write([takePushAnswers()]);
    const due = await listDuePushes(db, PUSHES_PER_ROUND);
    await Promise.all(due.map((tree) => tree.push === "ask" ? ask(options, tree) : push(options, tree)));
    return due.length === 0 ? Infinity : 0;
  }
}

async function ask(options: PushOptions, tree: DuePush): Promise<void> {
  const { paths } = options;
  const { worker_id, base_commit, head_commit } = tree;
  try {
    const stat = await readStat(getMirrorDir(paths, worker_id), { base: base_commit, head: head_commit });
    const masks = buildMasks(await readWorkerSecrets(options, worker_id));
    await openPushQuestion(options, tree, maskText(masks, formatPush(tree.branch, stat)));
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    await fail(options, tree, "failed", error.message);
  }
}

async function openPushQuestion(
  { db, clock }: PushOptions,
  tree: DuePush,
  changes: string,
): Promise<void> {
  const { id, worker_id, worker_name, question_id } = tree;
  const now = clock.now();
  const call = {
    tool: TOOL,
    arguments: changes,
    digest: "",
    timeout_ms: QUESTION_TIMEOUT_MS,
  };
  const question: NewQuestion = {
    id: createId(),
    ...{ session_key: tree.session_key, message_id: tree.message_id, task_id: tree.task_id },
    ...{ execution_id: tree.execution_id, worker_id, text: formatApproval(call) },
    ...{ tool: TOOL, arguments: call.arguments, path: "", call_key: "" },
    ...{ options: [ALLOW, DENY], default: DENY },
    ...{ status: "open", answer: "", answered_by: "", answered_at: null, seen_at: null },
    created_at: now,
    expires_at: computeExpiry(tree.session_key, QUESTION_TIMEOUT_MS, now),
    asked_by: `worker:${worker_id}`,
    own_session: false,
    work_dir: "",
  };
  // An open question is about earlier changes.
  const withdrawn = question_id === "" ? [] : withdrawQuestions({ id: question_id }, "system", now);
  const { won } = await db.write([
    ...markPushAsked(id, question.id),
    ...withdrawn,
    ...openQuestion(question, now),
  ]);
  if (!won) await fail({ db, clock }, tree, "failed", `too many questions are open for ${worker_name}`);
}

// Agents choose the names of files, so no name may look like another line.
function formatPush(branch: string, stat: Stat): string {
  const { files, files_changed } = stat;
  const shown = files.slice(0, FILES_SHOWN_MAX).map((file) =>
    `${file.insertions === null ? "binary" : `+${file.insertions} -${file.deletions}`} ${
      escapeInvisible(file.path).replaceAll("\n", "\\n")
    }`
  );
  const more = files_changed - shown.length;
  return [
    `branch: ${branch}`,
    formatChangeCounts(stat),
    ...shown,
    ...(more > 0 ? [`and ${formatFiles(more)} more`] : []),
  ].join("\n");
}

async function push(options: PushOptions, tree: DuePush): Promise<void> {
  const { db, clock, paths, mirrors } = options;
  const { id, worker_id, branch, head_commit: commit, pushed_commit: expected } = tree;
  try {
    const worker = await findWorker(db, worker_id);
    if (worker === null || worker.repo === null) {
      throw new BlockedError("its worker has no repository any longer");
    }
    const remote = await resolveRemote(options, worker_id, worker.repo);
    const mirror = getMirrorDir(paths, worker_id);
    // Prepares the mirror. The push does not hold it, because a slow remote would keep other runs from their worktrees.
    await mirrors.use(mirror, () => Promise.resolve());
    await checkSecrets(options, mirror, tree);
    faultPoint("push.pre");
    await pushOnce(mirror, remote, { branch, commit, expected });
    faultPoint("push.post");
    const now = clock.now();
    await db.write([
      markPushed(id, commit, now),
      record(now, { kind: "tree.pushed", ...pickKeys(tree), data: { tree_id: id, branch, commit } }),
    ]);
  } catch (error) {
    const isKnown = error instanceof GitError || error instanceof SetupError || error instanceof BlockedError;
    if (!isKnown) throw error;
    await fail(options, tree, isLasting(error) ? "blocked" : "failed", error.message);
  }
}

const LASTING = ["exists", "denied", "not_found"];

/** Whether the same push would fail again until a person does something. */
function isLasting(error: Error): boolean {
  return !(error instanceof GitError) || LASTING.includes(error.failure);
}

// A service that was killed after a push does not know about that push.
async function pushOnce(
  mirror: string,
  remote: Remote,
  wanted: { branch: string; commit: string; expected: string },
): Promise<void> {
  const extras = { timeoutMs: PUSH_TIMEOUT_MS };
  try {
    await pushBranch(mirror, remote, wanted, extras);
  } catch (error) {
    if (!(error instanceof GitError) || error.failure !== "exists") throw error;
    const ref = `refs/heads/${wanted.branch}`;
    const found = (await listRemoteRefs(remote, [ref], extras)).get(ref);
    if (found === undefined || !await isAncestor(mirror, found, wanted.commit)) throw error;
    await pushBranch(mirror, remote, { ...wanted, expected: found }, extras);
  }
}

async function checkSecrets(options: PushOptions, mirror: string, tree: DuePush): Promise<void> {
  const masks = buildMasks(await readWorkerSecrets(options, tree.worker_id));
  if (masks.length === 0) return;
  const { text, isCut } = await readPatches(mirror, { base: tree.base_commit, head: tree.head_commit });
  if (maskText(masks, text) !== text) throw new BlockedError("a commit contains a secret of its worker");
  if (isCut) throw new BlockedError("its commits are too large to look for secrets in them");
}

async function fail(
  { db, clock }: Pick<PushOptions, "db" | "clock">,
  tree: DuePush,
  state: "failed" | "blocked",
  reason: string,
): Promise<void> {
  const now = clock.now();
  log.warning("Cannot push {branch}: {reason}", { branch: tree.branch, reason });
  await db.write([
    markPushFailed(tree.id, { push: state, push_error: reason }, now),
    record(now, {
      kind: "tree.push_failed",
      ...pickKeys(tree),
      data: { tree_id: tree.id, branch: tree.branch, reason },
    }),
  ]);
}

function pickKeys({ worker_id, session_key, task_id, execution_id, message_id }: DuePush) {
  return { worker_id, session_key, task_id, execution_id, message_id };
}
