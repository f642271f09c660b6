import { type FieldError, invalid, ServiceError } from "../../domain/call/error.ts";
import { isId } from "../../domain/call/field.ts";
import { buildScriptSessionKey } from "../../domain/chat/message.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import { buildNewTask, type Task, type TaskCreate } from "../../domain/work/task.ts";
import type { TaskBatch, TaskBatchCreate } from "../../domain/work/task_batch.ts";
import { planTask as planTimes } from "../../domain/work/task_plan.ts";
import { createId } from "../../base/id.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { findInbound } from "../../store/chat/inbound.ts";
import { storeTrace } from "../../store/events/trace.ts";
import { record, recordAll } from "../../store/events/journal.ts";
import {
  insertTask,
  insertTasks,
  listOrigins,
  listWorkerEngines,
  type NewTask,
  type Origin,
} from "../../store/work/task.ts";
import { findWorker } from "../../store/workers/worker.ts";
import type { Call } from "../call/call.ts";
import { checkChainDepth } from "../call/chain_depth.ts";
import { checkCommands, checkDelivery } from "./task_commands.ts";
import { type Creation, RaceError } from "../call/idempotency.ts";
import { buildParentHold } from "../../domain/work/task_parent.ts";
import { insertParents, type Parent } from "../../store/work/task_parent.ts";
import {
  applyParents,
  findNamedParents,
  listNewParents,
  type ResolvedParents,
  resolveParents,
} from "./task_parents.ts";
import type { Deps } from "../call/services.ts";

type CreateDeps = Deps<"db" | "clock" | "engines" | "limits" | "runLimits" | "timeZone">;

/** Creates a task. Throws `invalid_request`, `not_found` or `conflict`. */
export async function planTask(deps: CreateDeps, call: Call, input: TaskCreate): Promise<Creation<Task>> {
  const message = await findInbound(deps.db, input.message_id, getBoundSessionKey(call.caller));
  const origin = message === null ? null : { message_id: message.id, session_key: message.session_key };
  return await buildTaskCreation(deps, call, input, origin);
}

/**
 * Plans a task in the conversation of `origin`. Origin is null when the caller can see no message with the input's id.
 * Throws `invalid_request`, `not_found` or `conflict`.
 */
export async function buildTaskCreation(
  deps: CreateDeps,
  call: Call,
  input: TaskCreate,
  origin: Origin | null,
): Promise<Creation<Task>> {
  const { db, clock, runLimits } = deps;
  const now = clock.now();
  const parents = await findNamedParents(db, call, [input]);
  const worker = input.gate || input.verify ? await findWorker(db, input.worker_id) : null;
  const plan = buildPlan(deps, call, input, {
    now,
    origin,
    engine: worker?.engine ?? "",
    parents: resolveParents(input, parents, null),
  });
  const { task } = plan;
  const depth = await checkChainDepth(deps, call, "create the task", plan.parents.depth);
  await runLimits.take(call, "tasks");
  return {
    // The insert itself checks the worker, so the worker cannot be deleted in between.
    statements: [
      ...insertTask(buildRow(call, plan, depth)),
      ...insertParents(listNewParents(task.id, plan.parents)),
      ...storeTrace([task.id], call.trace, now),
      record(now, buildCreatedEvent(task, call)),
    ],
    response: task,
    lost: async () =>
      await findWorker(db, input.worker_id) === null
        ? buildUnknownWorker(input.worker_id)
        : new RaceError("conflict", PARENTS_CHANGED),
  };
}

const PARENTS_CHANGED = "Cannot create the task: a task in `after` has changed meanwhile. Try again.";

// Tasks checked before the loop yields: a cron's next time may take a millisecond.
const CHECKED_AT_ONCE = 20;

/** Creates all tasks of a batch or none. Throws the errors of planTask(), with the task's index in each field's path. */
export async function planTasks(
  deps: CreateDeps,
  call: Call,
  { tasks: inputs }: TaskBatchCreate,
): Promise<Creation<TaskBatch>> {
  const { db, clock, runLimits } = deps;
  const now = clock.now();
  const workerIds = listUnique(inputs.map(({ worker_id }) => worker_id).filter(isId));
  const [origins, engines, parents] = await Promise.all([
    listOrigins(db, listUnique(inputs.map(({ message_id }) => message_id)), getBoundSessionKey(call.caller)),
    listWorkerEngines(db, workerIds),
    findNamedParents(db, call, inputs),
  ]);
  const plans: TaskPlan[] = [];
  const earlier: Parent[] = [];
  const base = call.caller.run === null ? 0 : call.caller.run.depth + 1;
  for (const [index, input] of inputs.entries()) {
    if (index > 0 && index % CHECKED_AT_ONCE === 0) await yieldToLoop();
    const origin = origins.get(input.message_id) ?? null;
    const engine = engines.get(input.worker_id);
    try {
      const resolved = resolveParents(input, parents, earlier);
      const plan = buildPlan(deps, call, input, { now, origin, engine: engine ?? "", parents: resolved });
      plans.push(plan);
      earlier.push(describeAsParent(plan, base));
      if (engine === undefined) throw buildUnknownWorker(input.worker_id);
    } catch (error) {
      throw error instanceof ServiceError ? addTaskIndex(index, error) : error;
    }
  }
  const deepest = Math.max(...plans.map((plan) => plan.parents.depth));
  await checkChainDepth(deps, call, "create the task", deepest);
  await runLimits.take(call, "tasks", plans.length);
  return {
    statements: [
      ...insertTasks(plans.map((plan) => buildRow(call, plan, base))),
      ...insertParents(plans.flatMap(({ task, parents }) => listNewParents(task.id, parents))),
      ...storeTrace(plans.map(({ task }) => task.id), call.trace, now),
      recordAll(plans.map(({ task }) => [now, buildCreatedEvent(task, call)])),
    ],
    response: { tasks: plans.map(({ task: { id, status, reason } }) => ({ id, status, reason })) },
    lost: async () => {
      const left = await listWorkerEngines(db, workerIds);
      const index = inputs.findIndex(({ worker_id }) => !left.has(worker_id));
      if (index < 0) return new RaceError("conflict", PARENTS_CHANGED);
      return addTaskIndex(index, buildUnknownWorker(inputs[index]?.worker_id ?? ""));
    },
  };
}

function listUnique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

/** Adds a task's index to the paths of its error. */
function addTaskIndex(index: number, error: ServiceError): ServiceError {
  const { errors = [{ path: "", message: error.message }], ...extras } = error.extras;
  const named = errors.map(({ path, message }): FieldError => ({
    path: path === "" ? `tasks.${index}` : `tasks.${index}.${path}`,
    message,
  }));
  const [first] = errors;
  const isNamed = first !== undefined && first.path !== "" && error.message.startsWith(`${first.path}: `);
  const detail = `tasks.${index}${isNamed ? "." : ": "}${error.message}`;
  return new ServiceError(error.code, detail, { ...extras, errors: named });
}

/** A checked task and its due time. */
interface TaskPlan {
  task: Task;
  due_at: number | null;
  parents: ResolvedParents;
}

// Tasks of a batch are stored before their parents are, so an earlier task of the batch has its planned status.
function describeAsParent({ task: { id, status }, parents }: TaskPlan, base: number): Parent {
  return {
    id,
    status: status === "cancelled" ? "cancelled" : "",
    depth: Math.max(base, parents.depth),
    after_depth: parents.after_depth,
  };
}

/** The objects that a new task refers to. */
interface TaskContext {
  now: number;
  /** Null when the caller can see no message with this id. */
  origin: Origin | null;
  /** The worker's engine, which matters only for commands. */
  engine: string;
  parents: ResolvedParents;
}

// All checks of a new task that do not need its worker.
function buildPlan(
  { engines, timeZone }: CreateDeps,
  call: Call,
  input: TaskCreate,
  { now, origin, engine, parents }: TaskContext,
): TaskPlan {
  const plan = applyParents(planTimes(input, now, timeZone), parents);
  const joined = origin ?? findScriptOrigin(call, input.message_id);
  if (!isId(input.worker_id)) throw buildUnknownWorker(input.worker_id);
  checkDelivery(call, input.deliver_to);
  checkCommands({ call, engines, engine }, {
    gate: input.gate ?? undefined,
    verify: input.verify ?? undefined,
  });
  const seed = {
    ...input,
    ...joined,
    id: createId(),
    created_by: call.caller.subject,
    after: parents.all.map(({ id }) => id),
    held_by: plan.status === "pending" ? buildParentHold(parents.open) : null,
  };
  return { task: buildNewTask(seed, plan, now), due_at: plan.due_at, parents };
}

// A script may use any message id, a run only a message of its conversation.
function findScriptOrigin(call: Call, messageId: string): Origin {
  if (call.caller.run === null) {
    return { message_id: messageId, session_key: buildScriptSessionKey(messageId) };
  }
  throw new ServiceError(
    "not_found",
    `Cannot find message ${JSON.stringify(messageId)}: no such message`,
    { errors: [{ path: "message_id", message: "no such message" }] },
  );
}

function buildRow(call: Call, { task, due_at, parents }: TaskPlan, depth: number): NewTask {
  return {
    ...task,
    due_at,
    parent_task_id: call.caller.run?.task_id || null,
    // Only agents are limited by it.
    depth: call.caller.run === null ? 0 : Math.max(depth, parents.depth),
    after_depth: parents.after_depth,
    open_parents: parents.open.length,
    stopped_by: parents.stopper?.id ?? "",
  };
}

function buildCreatedEvent(task: Task, call: Call): JournalEntry {
  const { id: task_id, session_key, worker_id, message_id, type, status, reason } = task;
  return {
    kind: "task.created",
    ...{ session_key, worker_id, task_id, message_id },
    actor: call.caller.subject,
    data: { type, status, reason },
  };
}

function buildUnknownWorker(id: string): ServiceError {
  return invalid("worker_id", `no worker has the id ${JSON.stringify(id)}`);
}
