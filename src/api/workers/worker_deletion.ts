import { join } from "node:path";
import { removeTree } from "../../base/files/tree_removal.ts";
import { createLogger } from "../../base/log.ts";
import { createId } from "../../base/id.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";
import { conflict, notFound, ServiceError } from "../../domain/call/error.ts";
import { buildOutbound, parsePlatformName } from "../../domain/chat/message.ts";
import { planRemoval, type Removal, removePlanned, ReplacedError } from "../../files/removal.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { listOpenExecutionIds } from "../../store/work/execution.ts";
import { record } from "../../store/events/journal.ts";
import { sendMessage } from "../../store/chat/outbound.ts";
import { deleteWorkerApprovals } from "../../store/work/approval.ts";
import { withdrawQuestions } from "../../store/work/question_transitions.ts";
import { countUnpushedTrees, deleteWorkerTrees } from "../../store/work/tree.ts";
import { listWaitingReplies } from "../../store/work/task.ts";
import { cancelOwnerOccurrences } from "../../store/work/occurrence.ts";
import { cancelOwnerTasks } from "../../store/work/task_transitions.ts";
import { deleteWorker as deleteWorkerRow, findWorker, listWorkDirs } from "../../store/workers/worker.ts";
import { type Answer, DELETED, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkDeletable } from "./work_dir.ts";

const log = createLogger("workers");

/**
 * Deletes a worker: cancels its tasks, ends its runs and returns after their end. Executions stay. Throws `not_found`,
 * or `conflict` before any change when the directory cannot be deleted.
 */
export async function deleteWorker(
  { db, clock, paths, engines, interruptRun }: Deps<"db" | "clock" | "paths" | "engines" | "interruptRun">,
  call: Call,
  id: string,
  deleteWorkDir: boolean,
): Promise<Answer<DeleteResult>> {
  const worker = requireFound(await findWorker(db, id), "worker", id);
  // The branches of a repository are on this machine, wherever its worker runs.
  if (deleteWorkDir && worker.runs_on.length > 0 && worker.repo === null) {
    throw conflict(
      `Cannot delete the work directory ${worker.work_dir}: it is on ${
        worker.home === "" || worker.home === NO_HOME ? "no machine" : `the runner ${worker.home}`
      }. Nothing was deleted. Omit delete_work_dir.`,
    );
  }
  if (!deleteWorkDir) await checkPushed(db, worker);
  if (deleteWorkDir && worker.repo === null) {
    checkDeletable(worker.work_dir, paths, await listWorkDirs(db, id));
  }
  const removal = deleteWorkDir ? planRemoval(worker.work_dir) : null;
  await db.writeOr(
    await buildWorkerDeletion(db, worker, call.caller.subject, clock.now()),
    () => notFound("worker", id),
  );
  await endWorkerRuns({ db, paths, engines, interruptRun }, id);
  if (removal !== null) await removeDirectory(removal, worker.work_dir);
  return DELETED;
}

/** Throws `conflict` for a worker with commits that are in no other repository. */
export async function checkPushed(db: Database, { id, name }: Pick<Worker, "id" | "name">): Promise<void> {
  const branches = await countUnpushedTrees(db, id);
  if (branches === 0) return;
  throw conflict(
    `Cannot delete worker ${name}: ${branches} of its branches have changes that were not pushed. Push or discard them, ` +
      "or use delete_work_dir to delete them.",
  );
}

/** Builds the statements that delete a worker with its tasks and questions, and that notify conversations with open tasks. */
export async function buildWorkerDeletion(
  db: Database,
  { id, name }: Pick<Worker, "id" | "name">,
  actor: string,
  now: number,
): Promise<Statement[]> {
  const waiting = await listWaitingReplies(db, id);
  return [
    ...deleteWorkerRow(id),
    cancelOwnerOccurrences({ worker_id: id }, now),
    cancelOwnerTasks({ worker_id: id }, "worker deleted", now),
    ...withdrawQuestions({ worker_id: id }, actor, now),
    deleteWorkerApprovals(id),
    deleteWorkerTrees(id),
    ...waiting.flatMap((task) =>
      sendMessage(buildOutbound({
        id: createId(),
        session_key: task.session_key,
        platform: parsePlatformName(task.session_key),
        message_id: task.message_id,
        content: `${name} was deleted, so this task was cancelled: ${task.beginning}${
          task.more === 0 ? "" : `\n\n${task.more} more tasks of this conversation were cancelled, too.`
        }`,
        source_type: "system",
        source_id: task.id,
      }, now))
    ),
    record(now, { kind: "worker.deleted", worker_id: id, actor, data: { name } }),
  ];
}

/** Ends a deleted worker's runs and removes the state of its engines. */
export async function endWorkerRuns(
  { db, paths, engines, interruptRun }: Deps<"db" | "paths" | "engines" | "interruptRun">,
  id: string,
): Promise<void> {
  // No run can be claimed after the commit, so this list is complete.
  const open = await listOpenExecutionIds(db, id);
  await Promise.all(open.map((executionId) => interruptRun(executionId)));
  await engines.release(id);
  await removeTree({ root: paths.state, path: join(paths.state, id) }).catch((error) => {
    log.warning("Cannot remove the state of worker {id}: {error}", { id, error });
  });
}

// An agent that is still ending may replace the checked directory.
async function removeDirectory(removal: Removal, path: string): Promise<void> {
  const kept = `The worker is deleted, but not its directory ${path}`;
  try {
    await removePlanned(removal);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    if (error instanceof ReplacedError) {
      throw conflict(`${kept}: ${error.message}. Check the directory and delete it by hand.`);
    }
    throw new ServiceError("internal", kept, { cause: error });
  }
}
