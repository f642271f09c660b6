// feeding -> bee_processed, failed, or feeding again later: all writes of routing decisions
import type { BeePlan, PlannedTask } from "../../domain/chat/bee_plan.ts";
import { formatPlanReason } from "../../domain/chat/bee_plan.ts";
import { type Usage, USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import { buildOutbound, parsePlatformName } from "../../domain/chat/message.ts";
import { BEE_SUBJECT } from "../../domain/call/scope.ts";
import { buildNewTask } from "../../domain/work/task.ts";
import { getRetryDelayMs } from "../../domain/work/retry_delay.ts";
import { planTask } from "../../domain/work/task_plan.ts";
import { createId } from "../../base/id.ts";
import { type BeeRunEnd, finishBeeRun } from "../../store/chat/bee_run.ts";
import type { Statement } from "../../store/db/database.ts";
import { failMessage, finishMessage, postponeMessage, releaseMessage } from "../../store/chat/inbound.ts";
import { record, recordIdle } from "../../store/events/journal.ts";
import { sendMessage } from "../../store/chat/outbound.ts";
import { insertTask } from "../../store/work/task.ts";
import { insertParents } from "../../store/work/task_parent.ts";
import type { Failure, RoutedTo } from "../../domain/call/vocabulary.ts";

export interface MessageToRoute {
  id: string;
  session_key: string;
  platform: string;
  /** Number of agent tasks in the chain that led to this message. */
  depth: number;
}

export interface Routing {
  plan: BeePlan;
  reason: string;
  /** The result: tasks, a reply of the coordinator, or no recipient. */
  routed: Exclude<RoutedTo, "">;
}

/** Builds a plan that gives the message to one worker. */
export function buildPlan(workerId: string, instruction: string, now: number): BeePlan {
  const plan = planTask({ type: "immediate" }, now, "");
  return { reply: "", tasks: [{ workerId, workerName: "", instruction, type: "immediate", plan }] };
}

/** Builds the batch of a routed message: run, tasks, reply and journal (contract 4.4). */
export function finishRouting(
  message: MessageToRoute,
  beeRunId: string,
  { plan, reason, routed }: Routing,
  usage: Usage,
  now: number,
): Statement[] {
  const keys = pickKeys(message);
  const end = {
    ...ENDED,
    status: "completed" as const,
    reason,
    reply: plan.reply,
    task_count: plan.tasks.length,
    usage,
  };
  return [
    ...finishMessage(message.id, routed, now),
    ...finishBeeRun(beeRunId, end, now),
    record(now, { kind: "message.routed", ...keys, actor: BEE_SUBJECT, data: { reason } }),
    ...buildTasks(message, plan.tasks, now),
    ...(plan.reply === ""
      ? []
      : buildMessage(message, { content: plan.reply, source: "bee", id: beeRunId }, now)),
    recordIdle(now, message.session_key),
  ];
}

/** Turns the coordinator's plan into a routing decision. */
export function buildRouting(plan: BeePlan): Routing {
  return { plan, reason: formatPlanReason(plan), routed: plan.tasks.length > 0 ? "task" : "reply" };
}

/** Why an attempt to route a message failed. */
interface RoutingFailure {
  failure: Failure;
  error: string;
  usage: Usage;
}

/** Ends a failed attempt and schedules the next one with a growing delay. */
export function retryLater(
  message: MessageToRoute,
  beeRunId: string,
  failure: RoutingFailure,
  attempt: number,
  now: number,
): Statement[] {
  return [
    ...postponeMessage(message.id, failure.error, now + getRetryDelayMs(attempt)),
    ...finishBeeRun(beeRunId, { ...ENDED, ...failure }, now),
  ];
}

/** Postpones a message until its budget allows a run. No attempt is used up, and the conversation is notified once (contract 14). */
export function waitForBudget(
  message: MessageToRoute & { error: string },
  reason: string,
  retryAt: number,
  now: number,
): Statement[] {
  const waits = postponeMessage(message.id, `${WAITS}${reason}`, retryAt);
  if (message.error.startsWith(WAITS)) return waits;
  const content = `This message has to wait: ${reason}.`;
  return [...waits, ...buildMessage(message, { content, source: "system", id: message.id }, now)];
}

const WAITS = "waits: ";

/** Fails the message after its last attempt and notifies the conversation (contract 4.4). */
export function giveUp(
  message: MessageToRoute,
  beeRunId: string | null,
  failure: RoutingFailure,
  now: number,
): Statement[] {
  const content = `Cannot route this message: ${failure.failure}, ${failure.error}. ` +
    "Send it again with a worker's name in front, such as @name.";
  return [
    ...failMessage(message.id, failure.error, now),
    ...(beeRunId === null ? [] : finishBeeRun(beeRunId, { ...ENDED, ...failure }, now)),
    record(now, {
      kind: "message.failed",
      ...pickKeys(message),
      actor: BEE_SUBJECT,
      data: { error: failure.error },
    }),
    ...buildMessage(message, { content, source: "system", id: beeRunId ?? "" }, now),
    recordIdle(now, message.session_key),
  ];
}

/** Releases the message at a shutdown without using up an attempt. The next start routes it. */
export function releaseAtStop(message: MessageToRoute, beeRunId: string, now: number): Statement[] {
  return [...releaseMessage(message.id, now), ...finishBeeRun(beeRunId, { ...ENDED, ...STOPPED }, now)];
}

/** Ends the run of a message that was cleared meanwhile. */
export function dropRun(beeRunId: string, usage: Usage, now: number): Statement[] {
  const end = { ...ENDED, failure: "cancelled" as const, error: "the message was cleared meanwhile", usage };
  return finishBeeRun(beeRunId, end, now);
}

const STOPPED = {
  failure: "server_lost",
  error: "the service was stopped; it is routed after the next start",
} as const;
const ENDED: BeeRunEnd = {
  status: "failed",
  reason: "",
  reply: "",
  task_count: 0,
  error: "",
  failure: "",
  usage: USAGE_UNKNOWN,
};

function pickKeys({ id, session_key }: MessageToRoute) {
  return { session_key, message_id: id };
}

function buildMessage(
  message: MessageToRoute,
  { content, source, id }: { content: string; source: "bee" | "system"; id: string },
  now: number,
): Statement[] {
  return sendMessage(
    buildOutbound({
      id: createId(),
      ...pickKeys(message),
      platform: message.platform || parsePlatformName(message.session_key),
      content,
      source_type: source,
      source_id: id,
      execution_id: source === "bee" ? id : "",
    }, now),
    { unless: source === "bee" ? "unless-same" : "always" },
  );
}

function buildTasks(message: MessageToRoute, planned: readonly PlannedTask[], now: number): Statement[] {
  const ids = planned.map(() => createId());
  const depths: number[] = [];
  return planned.flatMap((task, index) => {
    const { workerId, instruction, type, plan, after = [], after_when = "success" } = task;
    const parents = after.map((position) => ids[position] ?? "");
    const after_depth = Math.max(0, ...after.map((position) => (depths[position] ?? 0) + 1));
    depths.push(after_depth);
    const id = ids[index] ?? "";
    const seed = {
      ...{ id, ...pickKeys(message), worker_id: workerId, instruction, type, created_by: BEE_SUBJECT },
      ...{ after: parents, after_when },
    };
    const row = { ...buildNewTask(seed, plan, now), due_at: plan.due_at, parent_task_id: null };
    return [
      ...insertTask({ ...row, depth: message.depth, after_depth, open_parents: parents.length }),
      ...insertParents(
        parents.map((parent, position) => ({ taskId: id, position, id: parent, status: "" })),
      ),
      record(now, {
        kind: "task.created",
        ...pickKeys(message),
        worker_id: workerId,
        task_id: id,
        actor: BEE_SUBJECT,
        data: { type, status: row.status },
      }),
    ];
  });
}
