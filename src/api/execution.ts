import { conflict, notFound } from "../domain/error.ts";
import type { Execution, ExecutionFilter } from "../domain/execution.ts";
import type { Listing } from "../domain/page.ts";
import { faultPoint } from "../base/fault_point.ts";
import { keysOf } from "../domain/run_identity.ts";
import { boundTo } from "../domain/scope.ts";
import { eventsPath, logPath } from "../base/paths.ts";
import { findExecution, findExecutionJson, markCancelled } from "../store/execution.ts";
import { findBeeRunStatus } from "../store/bee_run.ts";
import { listExecutions as listExecutionRows } from "../store/execution_list.ts";
import { record } from "../store/journal.ts";
import { cancelRunOf } from "../store/task_move.ts";
import { findWorker } from "../store/worker.ts";
import type { Created } from "./create.ts";
import type { Call, Service } from "./service.ts";
import { createTask } from "./task.ts";
import { isEndedExecution } from "../domain/vocabulary.ts";

/** GET /api/executions (interface 4.2, execution list). */
export async function listExecutions(
  service: Service,
  call: Call,
  filter: ExecutionFilter,
): Promise<Listing> {
  return await listExecutionRows(service.db, filter, boundTo(call.caller), filter);
}

/** GET /api/workers/:id/executions. Throws `not_found` for an unknown worker. */
export async function listWorkerExecutions(
  service: Service,
  call: Call,
  workerId: string,
  filter: Omit<ExecutionFilter, "worker_id">,
): Promise<Listing> {
  if (await findWorker(service.db, workerId) === null) throw notFound("worker", workerId);
  return await listExecutions(service, call, { ...filter, worker_id: [workerId] });
}

/** GET /api/executions/:id. Throws `not_found`. */
export async function getExecution(service: Service, call: Call, id: string): Promise<string> {
  const json = await findExecutionJson(service.db, id, boundTo(call.caller));
  if (json === null) throw notFound("execution", id);
  return json;
}

/** POST /api/executions/:id/cancel: ends the run with its process tree and answers when it has ended (contract 3). Throws `not_found`, `conflict`. */
export async function cancelExecution(service: Service, call: Call, id: string): Promise<string> {
  const { db, clock } = service;
  const execution = JSON.parse(await getExecution(service, call, id)) as Execution;
  const keys = keysOf({ ...execution, execution_id: id });
  const now = clock.now();
  const reason = `cancelled by ${call.caller.subject}`;
  await db.writeOr([
    ...markCancelled(id, call.caller.subject),
    cancelRunOf(keys, reason, now),
    record(now, { kind: "execution.cancelling", ...keys, actor: call.caller.subject }),
  ], async () => {
    const status = (await findExecution(db, id))?.status;
    return status === undefined
      ? notFound("execution", id)
      : conflict(`Cannot cancel execution ${id}: it is ${status}`);
  });
  faultPoint("cancel.mid");
  await service.interrupt(id);
  return await getExecution(service, call, id);
}

/**
 * POST /api/executions/:id/retry: a new task for the same worker, with the same instruction and in the same conversation
 * (contract 17). Throws `not_found`, and `conflict` while it runs or when its worker was deleted.
 */
export async function retryExecution(service: Service, call: Call, id: string): Promise<Created> {
  const execution = JSON.parse(await getExecution(service, call, id)) as Execution;
  const { status, worker_id, worker_name, message_id, instruction } = execution;
  if (!isEndedExecution(status)) throw conflict(`Cannot retry execution ${id}: it is ${status}`);
  if (await findWorker(service.db, worker_id) === null) {
    throw conflict(`Cannot retry execution ${id}: its worker ${worker_name} was deleted`);
  }
  return await createTask(service, call, { message_id, worker_id, instruction, type: "immediate" });
}

/** What is needed to send the log of an execution, or of a coordinator's run: where it lies and whether more can come. Throws `not_found`. */
export async function findLog(
  service: Service,
  call: Call,
  id: string,
  raw: boolean,
): Promise<{ path: string; ended: boolean }> {
  const json = await findExecutionJson(service.db, id, boundTo(call.caller));
  const status = json === null
    ? await findBeeRunStatus(service.db, id, boundTo(call.caller))
    : (JSON.parse(json) as Execution).status;
  if (status === null) throw notFound("execution", id);
  return {
    path: raw ? eventsPath(service.paths, id) : logPath(service.paths, id),
    ended: isEndedExecution(status),
  };
}
