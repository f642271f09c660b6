import { conflict, notFound, type ServiceError } from "../../domain/call/error.ts";
import { parseJson } from "../../domain/call/json.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import type { Task } from "../../domain/work/task.ts";
import { buildParentHold, formatStopReason } from "../../domain/work/task_parent.ts";
import { isTimed } from "../../domain/work/task_type.ts";
import type { Database } from "../../store/db/database.ts";
import { insertOccurrence } from "../../store/work/occurrence.ts";
import { findTask, findTaskJson } from "../../store/work/task.ts";
import { findStopper, listOpenParents, retryEndedTask } from "../../store/work/task_parent.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { checkChainDepth } from "../call/chain_depth.ts";
import type { Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";

/**
 * Runs a failed or cancelled task again, and the tasks that its failure cancelled. Throws `not_found`, or `conflict` for a task that has
 * not failed, a schedule, a deleted worker, and a task whose parent has failed.
 */
export async function planRetry(
  deps: Deps<"db" | "clock" | "limits" | "runLimits">,
  call: Call,
  id: string,
): Promise<Creation<Task>> {
  const { db, clock, runLimits } = deps;
  const task = parseJson(
    requireFound(await findTaskJson(db, id, getBoundSessionKey(call.caller)), "task", id),
  );
  const depth = await checkChainDepth(deps, call, "retry the task");
  await runLimits.take(call, "tasks");
  const now = clock.now();
  const { session_key, worker_id, message_id } = task;
  const keys = { session_key, worker_id, message_id, task_id: id, actor: call.caller.subject };
  return {
    statements: [
      ...retryEndedTask(keys, depth, now),
      ...(isTimed(task.type) ? [insertOccurrence(id, now, "hand", now)] : []),
    ],
    response: {
      ...{ ...task, status: "pending", reason: "", run_no: task.run_no + 1, updated_at: now },
      held_by: buildParentHold(await listOpenParents(db, id)),
    },
    lost: () => explainRefusal(db, id),
  };
}

async function explainRefusal(db: Database, id: string): Promise<ServiceError> {
  const task = await findTask(db, id);
  if (task === null) return notFound("task", id);
  const refuse = (why: string) => conflict(`Cannot retry task ${id}: ${why}`);
  if (task.status !== "failed" && task.status !== "cancelled") {
    return refuse(`it is ${task.status}. Only failed and cancelled tasks can be retried.`);
  }
  if (task.type === "scheduled") return refuse("it is a schedule. Create a new one.");
  if (await findWorker(db, task.worker_id) === null) return refuse("its worker was deleted");
  const stopper = await findStopper(db, id);
  if (stopper === null) return refuse("its last run is still ending. Try again.");
  const why = formatStopReason(stopper.parent_id, stopper.status);
  return refuse(`${why}. Retry that task, which also returns this one to the queue.`);
}
