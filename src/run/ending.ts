// running -> completed, failed, cancelled, scheduled (a cron task) or pending (retry): the end of a run
import { buildOutbound, hasConversation, parsePlatformName } from "../domain/chat/message.ts";
import { RUN_QUESTIONS_MAX } from "../domain/work/question.ts";
import {
  ANNOUNCED_WAIT_MS,
  buildEngineBlock,
  formatWaitReason,
  LIMITED_RUNS_MAX,
  type RateLimit,
} from "../domain/workers/rate_limit.ts";
import { pickRunKeys, type RunKeys } from "../domain/call/run_identity.ts";
import { getRetryDelayMs } from "../domain/work/retry_delay.ts";
import type { TimedTaskType } from "../domain/work/task_type.ts";
import { createId } from "../base/id.ts";
import type { Statement } from "../store/db/database.ts";
import { type ExecutionEnd, finishExecution } from "../store/work/execution.ts";
import { record, recordIdle, recordTransition } from "../store/events/journal.ts";
import { endOccurrence } from "../store/work/occurrence.ts";
import { insertNotice } from "../store/chat/notice.ts";
import { sendMessage } from "../store/chat/outbound.ts";
import { endQuestions } from "../store/work/question_transitions.ts";
import { carrySteers, endSteers } from "../store/work/steer.ts";
import { storeLimit } from "../store/workers/rate_limit.ts";
import {
  delayTask,
  finishTask,
  postponeTask,
  requeueTask,
  retryTask,
} from "../store/work/task_transitions.ts";
import { buildScheduleEnd, type EndedSchedule } from "./schedule_end.ts";

interface EndedRun extends RunKeys {
  attempt: number;
  worker_name: string;
  engine: string;
  fallback_from: string;
}

/** The task fields that decide what follows its run. */
export type EndedTask =
  | { type: "immediate"; deliver_to: string }
  | EndedSchedule & { type: TimedTaskType };

/** A rate limit that stopped a run. */
export interface LimitHit {
  limit: RateLimit;
  /** Earlier runs of this task that met a rate limit. */
  runsBefore: number;
  /** Whether the limit blocks the whole engine or only this task. */
  blocks: "engine" | "task";
  /** Whether another engine runs the task next, so that the conversation does not wait. */
  continues?: boolean;
}

interface RunEnd extends ExecutionEnd {
  met?: LimitHit | null;
  /** Whether the engine could not be used, and another one has not been tried. */
  isReplaced?: boolean;
}

export interface Rules {
  defaultZone: string;
  maxAttempts: number;
}

/** Error of a run that an orderly shutdown ended. Such a run uses up no attempt (reliability SHD-2). */
export const STOPPED = "the service was stopped; the task runs again after the next start";

/** Error of a run that the shutdown of its runner ended. Such a run uses up no attempt. */
export const RUNNER_STOPPED = "its runner was stopped; the task runs again when a runner is available";

/** Error of a run whose runner lost contact with the service (contract 18). */
export const RUNNER_LOST = "its runner lost contact with the service";

/**
 * Builds the batch that ends a run: outcome, next status of the task, reply and journal. The guard of the execution lets only the first
 * outcome write.
 */
export function endRun(
  run: EndedRun,
  end: RunEnd,
  task: EndedTask | null,
  rules: Rules,
  now: number,
): Statement[] {
  const keys = pickRunKeys(run);
  const finish = recordTransition(finishExecution(run.execution_id, end, now), now, {
    kind: end.status === "completed" ? "execution.completed" : "execution.failed",
    ...keys,
    data: { failure: end.failure, exit_code: end.exit_code },
  });
  finish.push(
    ...endQuestions({
      executionId: run.execution_id,
      by: classifyEnd(end),
      taskIds: Array.from({ length: RUN_QUESTIONS_MAX }, createId),
    }, now),
  );
  if (end.failure === "server_lost") {
    const again = retryRun(run, end, rules, now, keys);
    if (again !== null) return [...finish, ...again, carrySteers(run.execution_id)];
  }
  if (end.isReplaced === true) {
    return [...finish, ...replaceEngine(run, now, keys), carrySteers(run.execution_id)];
  }
  const limited = end.met?.blocks === "engine" ? blockEngine(end.met, now, keys) : [];
  // A schedule waits for its next time, unless another engine can run it now.
  const isPostponed = end.met && end.met.runsBefore + 1 < LIMITED_RUNS_MAX &&
    (task?.type !== "scheduled" || end.met.continues === true);
  if (end.met && isPostponed) {
    return [...finish, ...limited, ...postpone(run, end.met, now, keys), carrySteers(run.execution_id)];
  }
  const next = finishOrReschedule(run, end, task, rules, now);
  const steers = endSteers(run, createId(), now);
  return [...finish, ...limited, ...next, ...steers, ...buildClosing(run, end, task, now)];
}

/** Builds the reply to the conversation and its idle event, the last statements of the batch. */
function buildClosing(run: EndedRun, end: RunEnd, task: EndedTask | null, now: number): Statement[] {
  const session_key = task?.deliver_to || run.session_key;
  const message = buildReply({ ...run, session_key }, end, task, now);
  return hasConversation(run.session_key) ? [...message, recordIdle(now, run.session_key)] : message;
}

// An orderly stop lets engines save their sessions. A run that was lost with the service may have lost the answers that it read.
function classifyEnd(end: ExecutionEnd): "end" | "cancelled" | "lost" {
  if (end.failure === "cancelled") return "cancelled";
  return end.failure === "server_lost" && !isStopped(end) ? "lost" : "end";
}

function isStopped({ error }: ExecutionEnd): boolean {
  return error === STOPPED || error === RUNNER_STOPPED;
}

function retryRun(
  run: EndedRun,
  end: ExecutionEnd,
  rules: Rules,
  now: number,
  keys: RunKeys,
): Statement[] | null {
  if (isStopped(end)) {
    const again = recordTransition(requeueTask(run, now), now, { kind: "task.requeued", ...keys });
    return [...again, endOccurrence(run.execution_id, "pending", now)];
  }
  if (run.attempt >= rules.maxAttempts) return null;
  const lostWith = end.error === RUNNER_LOST ? "its runner" : "the service";
  const reason = `attempt ${run.attempt} of ${rules.maxAttempts} was lost with ${lostWith}`;
  const retry = retryTask(run, now + getRetryDelayMs(run.attempt), reason, now);
  return [
    ...recordTransition(retry, now, { kind: "task.requeued", ...keys, data: { reason } }),
    endOccurrence(run.execution_id, "pending", now),
  ];
}

// Blocks the engine, and with it all tasks that need it (contract 3, Task; reliability DSP-13).
function blockEngine({ limit }: LimitHit, now: number, keys: RunKeys): Statement[] {
  const { engine, until } = limit;
  return [storeLimit(limit), record(now, { kind: "engine.limited", ...keys, data: { engine, until } })];
}

// The next run is part of the same attempt, so it uses up no other.
function replaceEngine(run: EndedRun, now: number, keys: RunKeys): Statement[] {
  const reason = `${run.engine} cannot be used`;
  return [
    ...recordTransition(delayTask(run, now, reason, now), now, {
      kind: "task.requeued",
      ...keys,
      data: { reason },
    }),
    endOccurrence(run.execution_id, "pending", now),
  ];
}

function postpone(
  run: EndedRun,
  { limit, runsBefore, blocks, continues = false }: LimitHit,
  now: number,
  keys: RunKeys,
): Statement[] {
  const reason = formatWaitReason(limit);
  const postponed = blocks === "engine"
    ? postponeTask(run, buildEngineBlock(limit), now)
    : delayTask(run, limit.until, reason, now);
  const waiting = [
    ...recordTransition(postponed, now, {
      kind: "task.requeued",
      ...keys,
      data: { reason },
    }),
    endOccurrence(run.execution_id, "pending", now),
  ];
  // The conversation gets one message about a long wait, not one for each limit that stops the task.
  const isNotified = !continues && runsBefore === 0 && limit.until - now >= ANNOUNCED_WAIT_MS &&
    hasConversation(run.session_key);
  if (!isNotified) return waiting;
  const message = { ...pickReplyKeys(run), content: `${run.worker_name} has to wait: ${reason}.` };
  return [
    ...waiting,
    ...sendMessage(buildOutbound({ ...message, source_type: "system", source_id: run.execution_id }, now)),
  ];
}

function finishOrReschedule(
  run: EndedRun,
  end: ExecutionEnd,
  task: EndedTask | null,
  { defaultZone }: Rules,
  now: number,
): Statement[] {
  const status = end.failure === "cancelled" ? "cancelled" : end.status;
  const keys = pickRunKeys(run);
  const occurrence = task?.type === "immediate" ? [] : [endOccurrence(run.execution_id, status, now)];
  if (task?.type === "scheduled") {
    return [
      ...occurrence,
      ...buildScheduleEnd(task, { ...end, status }, { keys, of: "run", defaultZone, now }),
    ];
  }
  const reason = end.status === "completed" ? "" : `${end.failure}: ${end.error}`;
  return [
    ...occurrence,
    ...recordTransition(finishTask(run, status, reason, now), now, { kind: `task.${status}`, ...keys }),
  ];
}

// The worker replies with its final text. The system reports a failure (contract 4.6).
function buildReply(run: EndedRun, end: ExecutionEnd, task: EndedTask | null, now: number): Statement[] {
  if (!hasConversation(run.session_key)) return [];
  const base = pickReplyKeys(run);
  if (end.status === "completed" && end.result.trim() !== "") {
    const message = {
      ...base,
      content: announceFallback(run, end.result),
      source_type: "worker" as const,
      source_id: run.worker_id,
    };
    return sendMessage(buildOutbound(message, now), { unless: "unless-same", same: end.result });
  }
  const content = announceFallback(run, formatClosing(run, end));
  if (task?.type === "scheduled" && end.status === "failed" && end.failure !== "cancelled") {
    return insertNotice({ kind: "schedule.failed", ...run, about: run.execution_id, content }, now);
  }
  const message = { ...base, content, source_type: "system" as const, source_id: run.execution_id };
  return sendMessage(buildOutbound(message, now), {
    unless: end.status === "completed" ? "unless-any" : "always",
  });
}

// The reader has to know that another model answers.
function announceFallback({ engine, fallback_from }: EndedRun, text: string): string {
  if (fallback_from === "") return text;
  return `${engine} replaces ${fallback_from}, which is rate limited or cannot be used.\n\n${text}`;
}

function pickReplyKeys(run: EndedRun) {
  return {
    id: createId(),
    session_key: run.session_key,
    platform: parsePlatformName(run.session_key),
    message_id: run.message_id,
    execution_id: run.execution_id,
  };
}

function formatClosing(run: EndedRun, end: ExecutionEnd): string {
  const { worker_name: worker, execution_id: id } = run;
  if (end.status === "completed") return `${worker} finished without a text (execution ${id}).`;
  if (end.failure === "cancelled") return `${worker} was stopped (execution ${id}).`;
  return `${worker} failed: ${end.failure}${end.error === "" ? "" : `, ${end.error}`} (execution ${id}).`;
}
