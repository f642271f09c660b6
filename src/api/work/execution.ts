import { createOnce } from "../call/idempotency.ts";
import { parseChatSessionId } from "../../domain/chat/chat.ts";
import { conflict, notFound } from "../../domain/call/error.ts";
import type { Execution, ExecutionFilter } from "../../domain/work/execution.ts";
import { type Json, parseJson } from "../../domain/call/json.ts";
import type { Database } from "../../store/db/database.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { pickRunKeys } from "../../domain/call/run_identity.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import { getEventsPath, getLogPath } from "../../base/paths.ts";
import { findChatSession, touchChatSession } from "../../store/chat/chat.ts";
import { findExecution, findExecutionJson, markCancelled } from "../../store/work/execution.ts";
import { findBeeRunStatus } from "../../store/chat/bee_run.ts";
import { listExecutions as listExecutionRows } from "../../store/work/execution_list.ts";
import { cancelTaskRun } from "../../store/work/task_transitions.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { type Answer, answerPage, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { isEndedExecution } from "../../domain/call/vocabulary.ts";
import { buildTaskCreation } from "./task_create.ts";
import type { Task } from "../../domain/work/task.ts";

export async function listExecutions({ db }: Deps<"db">, call: Call, filter: ExecutionFilter) {
  return answerPage(await listExecutionRows(db, filter, getBoundSessionKey(call.caller), filter));
}

export async function listWorkerExecutions(
  { db }: Deps<"db">,
  call: Call,
  workerId: string,
  filter: Omit<ExecutionFilter, "worker_id">,
): Promise<Answer<Execution[]>> {
  if (await findWorker(db, workerId) === null) throw notFound("worker", workerId);
  return await listExecutions({ db }, call, { ...filter, worker_id: [workerId] });
}

export async function getExecution({ db }: Deps<"db">, call: Call, id: string): Promise<Answer<Execution>> {
  return { json: await findVisible(db, call, id) };
}

async function findVisible(db: Database, call: Call, id: string): Promise<Json<Execution>> {
  return requireFound(await findExecutionJson(db, id, getBoundSessionKey(call.caller)), "execution", id);
}

/** Ends a run with its processes and returns after its end. Throws `not_found` or `conflict`. */
export async function cancelExecution(
  { db, clock, interruptRun }: Deps<"db" | "clock" | "interruptRun">,
  call: Call,
  id: string,
): Promise<Answer<Execution>> {
  const execution = parseJson(await findVisible(db, call, id));
  const keys = pickRunKeys({ ...execution, execution_id: id });
  const now = clock.now();
  const reason = `cancelled by ${call.caller.subject}`;
  await db.writeOr([
    ...markCancelled(id, call.caller.subject),
    cancelTaskRun(keys, reason, now),
    recordBy(call, now, { kind: "execution.cancelling", ...keys }),
  ], async () => {
    const status = (await findExecution(db, id))?.status;
    return status === undefined
      ? notFound("execution", id)
      : conflict(`Cannot cancel execution ${id}: it is ${status}`);
  });
  faultPoint("cancel.mid");
  await interruptRun(id);
  return { json: await findVisible(db, call, id) };
}

type RetryDeps = Deps<"db" | "clock" | "engines" | "limits" | "runLimits" | "timeZone">;

/**
 * Creates a task with the same worker, instruction and conversation, even when the message was deleted. Throws
 * `not_found`, or `conflict` during the run and after its worker or local session was deleted.
 */
export async function retryExecution(deps: RetryDeps, call: Call, id: string): Promise<Answer<Task>> {
  const { db, clock } = deps;
  const execution = parseJson(await findVisible(db, call, id));
  const { status, worker_id, worker_name, message_id, session_key, instruction } = execution;
  const buildRefusal = (why: string) => conflict(`Cannot retry execution ${id}: ${why}`);
  if (!isEndedExecution(status)) throw buildRefusal(`it is ${status}`);
  const buildWorkerGone = () => buildRefusal(`its worker ${worker_name} was deleted`);
  if (await findWorker(db, worker_id) === null) throw buildWorkerGone();
  const chatId = parseChatSessionId(session_key);
  return await createOnce(deps, call, async () => {
    const input = { message_id, worker_id, instruction, type: "immediate" as const };
    const { statements, response } = await buildTaskCreation(deps, call, input, { message_id, session_key });
    return {
      // Like a message to a session, the write itself checks that the session exists.
      statements: [...(chatId === null ? [] : touchChatSession(chatId, clock.now())), ...statements],
      response,
      lost: async () =>
        chatId !== null && await findChatSession(db, chatId) === null
          ? buildRefusal("its session was deleted")
          : buildWorkerGone(),
    };
  });
}

/** Finds the log of an execution or of a bee run, and whether it is complete. Throws `not_found`. */
export async function findLog(
  { db, paths }: Deps<"db" | "paths">,
  call: Call,
  id: string,
  raw: boolean,
): Promise<{ path: string; ended: boolean }> {
  const json = await findExecutionJson(db, id, getBoundSessionKey(call.caller));
  const status = json === null
    ? await findBeeRunStatus(db, id, getBoundSessionKey(call.caller))
    : parseJson(json).status;
  if (status === null) throw notFound("execution", id);
  return { path: raw ? getEventsPath(paths, id) : getLogPath(paths, id), ended: isEndedExecution(status) };
}
