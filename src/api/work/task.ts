import { conflict, invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import { type Json, parseJson } from "../../domain/call/json.ts";
import type { Database } from "../../store/db/database.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import type { Task, TaskFilter } from "../../domain/work/task.ts";
import { isRecurring, isTimed } from "../../domain/work/task_type.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import { listEvents, readJournalRange, recordTransition } from "../../store/events/journal.ts";
import { cancelTask as cancelTaskRow, runTaskNow } from "../../store/work/task_transitions.ts";
import { findTaskRun } from "../../store/work/execution.ts";
import { findTask, findTaskJson, listTasks as listTaskRows } from "../../store/work/task.ts";
import { cancelOccurrence, findOccurrence, insertOccurrence } from "../../store/work/occurrence.ts";
import { type Answer, answer, answerPage, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { checkChainDepth } from "../call/chain_depth.ts";
import { type Creation, RaceError } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";
import { waitFor, type WaitLimits } from "../call/long_poll.ts";
import { isEndedTask } from "../../domain/call/vocabulary.ts";

/** Lists tasks. Throws `invalid_request` without a filter key, and for keys that exclude each other. */
export async function listTasks({ db }: Deps<"db">, call: Call, filter: TaskFilter) {
  const { ref, session_key, message_id, worker_id, after } = filter;
  if ([ref, session_key, message_id, worker_id, after].every((one) => one === undefined)) {
    throw invalid("", "requires session_key, message_id, worker_id or after");
  }
  if (session_key !== undefined && message_id !== undefined) {
    throw invalid("message_id", "cannot be combined with session_key");
  }
  return answerPage(await listTaskRows(db, filter, getBoundSessionKey(call.caller), filter));
}

export async function getTask({ db }: Deps<"db">, call: Call, id: string): Promise<Answer<Task>> {
  return { json: await findVisible(db, call, id) };
}

async function findVisible(db: Database, call: Call, id: string): Promise<Json<Task>> {
  return requireFound(await findTaskJson(db, id, getBoundSessionKey(call.caller)), "task", id);
}

/** Cancels a pending or scheduled task, or the schedule of a running one. Throws `not_found` or `conflict`. */
export async function cancelTask({ db, clock }: Deps<"db" | "clock">, call: Call, id: string) {
  const task = parseJson(await findVisible(db, call, id));
  const now = clock.now();
  const cancelled: JournalEntry = {
    kind: "task.cancelled",
    ...getTaskKeys(task),
    actor: call.caller.subject,
  };
  await db.writeOr(
    [
      ...recordTransition(cancelTaskRow(id, `cancelled by ${call.caller.subject}`, now), now, cancelled),
      cancelOccurrence(id, now),
    ],
    () =>
      explainRefusal(
        db,
        id,
        "cancel",
        "Only pending and scheduled tasks can be cancelled. End a run with execution cancel.",
      ),
  );
  return { json: await findVisible(db, call, id) };
}

/**
 * Starts a scheduled task now without changing its schedule. The answer's `run_no` is the new run. Requests before that
 * run starts share it (contract 8.9). Throws `not_found`, or `conflict` for a running or ended task.
 */
export async function planRun(
  deps: Deps<"db" | "clock" | "limits" | "runLimits">,
  call: Call,
  id: string,
): Promise<Creation<Task>> {
  const { db, clock, runLimits } = deps;
  const task = parseJson(await findVisible(db, call, id));
  if (isToRun(task)) return { statements: [], response: task };
  const depth = await checkChainDepth(deps, call, "run the task");
  await runLimits.take(call, "tasks");
  const now = clock.now();
  const due: JournalEntry = {
    kind: "task.due",
    ...getTaskKeys(task),
    actor: call.caller.subject,
    data: { at: now, manual: true },
  };
  return {
    statements: [
      ...recordTransition(runTaskNow(task, depth, now), now, due),
      insertOccurrence(id, now, "hand", now),
    ],
    response: {
      ...task,
      status: "pending",
      attempt: 0,
      run_no: task.run_no + 1,
      next_run_at: isRecurring(task.type) ? task.next_run_at : null,
      updated_at: now,
    },
    lost: async () => {
      const found = await findTask(db, id);
      if (found !== null && isToRun(found)) {
        return new RaceError("conflict", `Cannot run task ${id}: its run was requested`);
      }
      return await explainRefusal(db, id, "run", "Only scheduled tasks can be run.");
    },
  };
}

// The task's run is due but has not started, so new requests share it.
function isToRun({ type, status }: Task): boolean {
  return status === "pending" && isTimed(type);
}

function getTaskKeys(
  task: Task,
): { session_key: string; worker_id: string; task_id: string; message_id: string } {
  const { session_key, worker_id, message_id } = task;
  return { session_key, worker_id, task_id: task.id, message_id };
}

async function explainRefusal(db: Database, id: string, verb: string, rule: string): Promise<ServiceError> {
  const task = await findTask(db, id);
  return task === null
    ? notFound("task", id)
    : conflict(`Cannot ${verb} task ${id}: it is ${task.status}. ${rule}`);
}

/**
 * Waits until a task has ended, or for a schedule until its current or next run or run `runNo` has ended. Returns the
 * unchanged task after `timeoutMs`. When a later run has started, `execution_id` and `last_…` describe the awaited run
 * (contract 8.9). Throws `not_found`.
 */
export async function waitForTask(
  deps: Deps<"db" | "clock" | "wakeups" | "lifecycle">,
  call: Call,
  id: string,
  { runNo, ...limits }: WaitLimits & { runNo: number | undefined },
): Promise<Answer<Task>> {
  const { db } = deps;
  let last: number | undefined;
  return await waitFor(deps, call, limits, async (waiting) => {
    last ??= (await readJournalRange(db)).last;
    const json = await findVisible(db, call, id);
    const task = parseJson(json);
    const over = runNo === undefined ? await hasEnded(db, task, last) : hasRun(task, runNo);
    if (over && task.type !== "immediate") return await describeRun(db, json, runNo ?? task.run_no);
    return over || waiting !== "on" ? { json } : null;
  });
}

// A later run may have started: the answer is the current task with the results of the awaited run.
async function describeRun(db: Database, json: Json<Task>, runNo: number): Promise<Answer<Task>> {
  const task = parseJson(json);
  const run = await findTaskRun(db, task.id, runNo);
  if (run === null) return await describeSkippedRun(db, json, runNo);
  if (runNo === task.run_no || run.status === "pending" || run.status === "running") return { json };
  const { id: execution_id, status, failure, error, started_at, created_at } = run;
  return answer({
    ...task,
    execution_id,
    last_status: failure === "cancelled" ? "cancelled" : status,
    last_run_at: started_at ?? created_at,
    last_error: error,
  });
}

// The gate skipped the run or failed, or the run was cancelled before its start.
async function describeSkippedRun(db: Database, json: Json<Task>, runNo: number): Promise<Answer<Task>> {
  const task = parseJson(json);
  const { status = "", due_at = null, error = "" } = await findOccurrence(db, task.id, runNo) ?? {};
  if (status !== "gated" && status !== "failed" && status !== "cancelled") return { json };
  const last_status = status === "gated" ? "" : status;
  return answer({ ...task, execution_id: null, last_status, last_run_at: due_at, last_error: error });
}

// A later run starts only after the earlier one has ended.
function hasRun(task: Task, runNo: number): boolean {
  if (isEndedTask(task.status) || task.run_no > runNo) return true;
  return task.run_no === runNo && task.status === "scheduled";
}

async function hasEnded(db: Database, task: Task, since: number): Promise<boolean> {
  if (isEndedTask(task.status)) return true;
  if (task.type !== "scheduled") return false;
  const kinds = ["execution.completed", "execution.failed", "task.gated", "task.gate_failed"];
  return (await listEvents(db, since, 1, { task_id: task.id, kinds })).length > 0;
}
