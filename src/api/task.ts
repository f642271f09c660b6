import { conflict, invalid, notFound, ServiceError } from "../domain/error.ts";
import { isId } from "../domain/field.ts";
import { scriptSessionKey } from "../domain/message.ts";
import type { Listing } from "../domain/page.ts";
import { boundTo } from "../domain/scope.ts";
import { newTask, planTask, type Task, type TaskCreate, type TaskFilter } from "../domain/task.ts";
import type { JournalEntry } from "../domain/journal.ts";
import { newId } from "../base/id.ts";
import { journalRange, listEvents, moved, record } from "../store/journal.ts";
import { findInbound } from "../store/inbound.ts";
import { cancelTask as cancelTaskRow, runTaskNow } from "../store/task_move.ts";
import { findTask, findTaskJson, insertTask, listTasks as listTaskRows } from "../store/task.ts";
import { create, type Created } from "./create.ts";
import { BELL } from "../base/bells.ts";
import type { Call, Service } from "./service.ts";
import { isEndedTask } from "../domain/vocabulary.ts";

/** POST /api/tasks (interface 4.2, task create, contract 3). Throws `invalid_request`, `not_found`, `conflict`. */
export async function createTask(service: Service, call: Call, input: TaskCreate): Promise<Created> {
  const { clock, config, runLimits } = service;
  return await create(service, call, async () => {
    const now = clock.now();
    const plan = planTask(input, now, service.timeZone);
    const origin = await findOrigin(service, call, input.message_id);
    // Whether there is such a worker is found out by the insert itself, in the same instant.
    if (!isId(input.worker_id)) throw unknownWorker(input.worker_id);
    const depth = call.caller.run === null ? 0 : call.caller.run.depth + 1;
    if (depth > config.limits.max_chain_depth) {
      await runLimits.tell(service, call, "chain_depth", config.limits.max_chain_depth);
      throw conflict(
        `Cannot create the task: it would stand ${depth} deep in a chain of tasks that agents made ` +
          `(limits.max_chain_depth is ${config.limits.max_chain_depth})`,
      );
    }
    await runLimits.take(service, call, "tasks");
    const seed = {
      id: newId(),
      ...origin,
      worker_id: input.worker_id,
      instruction: input.instruction,
      type: input.type,
      created_by: call.caller.subject,
    };
    const task = newTask(seed, plan, now);
    const parent_task_id = call.caller.run?.task_id || null;
    return {
      statements: [
        ...insertTask({ ...task, due_at: plan.due_at, parent_task_id, depth }),
        record(now, {
          kind: "task.created",
          session_key: task.session_key,
          worker_id: task.worker_id,
          task_id: task.id,
          message_id: task.message_id,
          actor: call.caller.subject,
          data: { type: task.type, status: task.status, reason: task.reason },
        }),
      ],
      response: task,
      lost: () => unknownWorker(input.worker_id),
    };
  });
}

function unknownWorker(id: string): ServiceError {
  return invalid("worker_id", `no worker has the id ${JSON.stringify(id)}`);
}

// The conversation that the task joins. A script may name anything, a run only its own conversation's messages.
async function findOrigin(
  service: Service,
  call: Call,
  messageId: string,
): Promise<{ message_id: string; session_key: string }> {
  const message = await findInbound(service.db, messageId, boundTo(call.caller));
  if (message !== null) return { message_id: message.id, session_key: message.session_key };
  if (call.caller.run !== null) throw notFound("message", messageId);
  return { message_id: messageId, session_key: scriptSessionKey(messageId) };
}

/** GET /api/tasks (interface 4.2, task list). Throws `invalid_request` when no key is named, or two that exclude each other. */
export async function listTasks(service: Service, call: Call, filter: TaskFilter): Promise<Listing> {
  const { session_key, message_id, worker_id } = filter;
  if (session_key === undefined && message_id === undefined && worker_id === undefined) {
    throw invalid("", "one of session_key, message_id and worker_id is needed");
  }
  if (session_key !== undefined && message_id !== undefined) {
    throw invalid("message_id", "does not go with session_key; use one of them");
  }
  return await listTaskRows(service.db, filter, boundTo(call.caller), filter);
}

/** GET /api/tasks/:id. Throws `not_found`. */
export async function getTask(service: Service, call: Call, id: string): Promise<string> {
  const json = await findTaskJson(service.db, id, boundTo(call.caller));
  if (json === null) throw notFound("task", id);
  return json;
}

/** POST /api/tasks/:id/cancel: pending or scheduled work, or the schedule of a running one (contract 3). Throws `not_found`, `conflict`. */
export async function cancelTask(service: Service, call: Call, id: string): Promise<string> {
  const { db, clock } = service;
  const task = JSON.parse(await getTask(service, call, id)) as Task;
  const now = clock.now();
  const cancelled: JournalEntry = { kind: "task.cancelled", ...keysOf(task), actor: call.caller.subject };
  await db.writeOr(
    moved(cancelTaskRow(id, `cancelled by ${call.caller.subject}`, now), now, cancelled),
    () =>
      refusal(
        service,
        id,
        "cancel",
        "only pending and scheduled tasks can be; end a run with execution cancel",
      ),
  );
  return await getTask(service, call, id);
}

/** POST /api/tasks/:id/run: starts a scheduled task now and leaves its schedule alone (contract 3). Throws `not_found`, `conflict`. */
export async function runTask(service: Service, call: Call, id: string): Promise<string> {
  const { db, clock } = service;
  const task = JSON.parse(await getTask(service, call, id)) as Task;
  await service.runLimits.take(service, call, "tasks");
  const now = clock.now();
  const due: JournalEntry = {
    kind: "task.due",
    ...keysOf(task),
    actor: call.caller.subject,
    data: { at: now, manual: true },
  };
  await db.writeOr(
    moved(runTaskNow(id, now), now, due),
    () => refusal(service, id, "run", "only scheduled tasks can be"),
  );
  return await getTask(service, call, id);
}

function keysOf(task: Task): { session_key: string; worker_id: string; task_id: string; message_id: string } {
  const { session_key, worker_id, message_id } = task;
  return { session_key, worker_id, task_id: task.id, message_id };
}

async function refusal(service: Service, id: string, verb: string, rule: string): Promise<ServiceError> {
  const task = await findTask(service.db, id);
  return task === null
    ? notFound("task", id)
    : conflict(`Cannot ${verb} task ${id}: it is ${task.status}; ${rule}`);
}

/**
 * GET /api/tasks/:id/wait: answers when the task has ended, a schedule with its current or next run, or after
 * `timeoutMs` with the task as it stands (contract 3, contract 5). Throws `not_found`.
 */
export async function waitForTask(
  service: Service,
  call: Call,
  id: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  const { db, clock, bells } = service;
  const bell = bells.listen(BELL.journal);
  try {
    const { last } = await journalRange(db);
    const until = clock.monotonic() + timeoutMs;
    const ended = AbortSignal.any([signal, service.stopping]);
    while (true) {
      const json = await getTask(service, call, id);
      const left = until - clock.monotonic();
      if (await hasEnded(service, JSON.parse(json), last) || left <= 0 || ended.aborted) return json;
      await bell.next(clock, Math.min(left, WAIT_POLL_MS), ended);
    }
  } finally {
    bell.close();
  }
}

const WAIT_POLL_MS = 1_000;

async function hasEnded(service: Service, task: Task, since: number): Promise<boolean> {
  if (isEndedTask(task.status)) return true;
  if (task.type !== "scheduled") return false;
  const kinds = ["execution.completed", "execution.failed"];
  return (await listEvents(service.db, since, 1, { task_id: task.id, kinds })).length > 0;
}
