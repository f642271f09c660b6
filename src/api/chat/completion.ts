// A message of an API client: it becomes a task like any other message, and the client waits for the reply
import { digest } from "../../base/bytes.ts";
import { createId } from "../../base/id.ts";
import { findClosest, formatSuggestion } from "../../domain/call/closest.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { API_PLATFORM } from "../../domain/call/message_id.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { mayCall } from "../../domain/call/scope.ts";
import { isEndedTask } from "../../domain/call/vocabulary.ts";
import {
  type CompletionCreate,
  type CompletionHead,
  type CompletionResult,
  type ModelList,
  readCompletionInput,
} from "../../domain/chat/completion.ts";
import { formatPlatformKey } from "../../domain/chat/platform.ts";
import { HOLD_ADVICE } from "../../domain/work/block.ts";
import { isLauncherHold, isLaunchHold } from "../../domain/work/launch.ts";
import {
  type CompletionTask,
  findJoinable,
  findOutcome,
  listCompletionTasks,
  listModels as listModelRows,
} from "../../store/chat/completion.ts";
import { storeTrace } from "../../store/events/trace.ts";
import { deleteAnswer } from "../../store/db/idempotency.ts";
import { insertInbound, takeMessage } from "../../store/chat/inbound.ts";
import { listCandidates, listWorkerIds } from "../../store/workers/worker.ts";
import { type Answer, answer } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import { waitFor } from "../call/long_poll.ts";
import type { Deps } from "../call/services.ts";
import { composeContent } from "./inbound.ts";
import { cancelExecution } from "../work/execution.ts";
import { cancelTask } from "../work/task.ts";
import { buildTaskCreation } from "../work/task_create.ts";

/** A request with the same body joins the run of the first for this long after the run has ended. */
const RETRY_JOINS_MS = 60_000;
const RETRY_AFTER_DEFAULT_S = 60;
const BODY_DIGEST_CHARACTERS = 32;

/** A message whose reply the client waits for. */
export interface PendingCompletion extends CompletionHead {
  session_key: string;
}

/** A run that ended without a reply: an outcome and no error of the service. */
export class RunFailure extends ServiceError {}

/** Lists the workers as models. Throws `forbidden` without the scopes to send a message and create its task. */
export async function listModels({ db }: Deps<"db">, call: Call): Promise<Answer<ModelList>> {
  checkScopes(call);
  const workers = await listModelRows(db);
  return answer({
    object: "list",
    data: workers.map(({ id, name, created_at, is_unique }) => ({
      id: is_unique === 1 ? name : id,
      object: "model",
      created: Math.floor(created_at / 1000),
      owned_by: "svc",
      name,
    })),
  });
}

type StartDeps = Deps<"db" | "clock" | "engines" | "limits" | "runLimits" | "timeZone">;

/**
 * Stores the message of a request with its task. A request with the Idempotency-Key of an earlier one, and a retry with the body of an earlier
 * one, join the run of that one. Throws `invalid_request`, `not_found`, `forbidden` or `conflict`.
 */
export async function startCompletion(
  deps: StartDeps,
  call: Call,
  request: CompletionCreate,
  isRetry: boolean,
): Promise<PendingCompletion> {
  checkScopes(call);
  const { db, clock } = deps;
  const owner = call.caller.person?.tokenId ?? call.caller.person?.userId ?? "";
  const body = digest(`${owner}\n${JSON.stringify(request)}`).slice(0, BODY_DIGEST_CHARACTERS);
  if (isRetry && call.idempotency === null) {
    const earlier = await findJoinable(db, API_PLATFORM, body, clock.now() - RETRY_JOINS_MS);
    if (earlier !== null) {
      const { id: message_id, session_key, received_at } = earlier;
      return { message_id, session_key, received_at, model: request.model };
    }
  }
  const created = await createOnce(deps, call, () => planCompletion(deps, call, request, { owner, body }));
  return JSON.parse(created.json) as PendingCompletion;
}

async function planCompletion(
  deps: StartDeps,
  call: Call,
  request: CompletionCreate,
  { owner, body }: { owner: string; body: string },
): Promise<Creation<PendingCompletion>> {
  const { text, excerpts, conversation } = readCompletionInput(request);
  const workerId = await findModel(deps, request.model);
  const messageId = createId();
  const session_key = formatPlatformKey(API_PLATFORM, { chat: owner, thread: conversation || messageId });
  const content = composeContent({ text, excerpts, unreadable: [] });
  const origin = { message_id: messageId, session_key };
  const input = {
    message_id: messageId,
    worker_id: workerId,
    instruction: content,
    type: "immediate" as const,
  };
  const { statements, lost } = await buildTaskCreation(deps, call, input, origin);
  const now = deps.clock.now();
  const message = {
    ...{ id: messageId, session_key, platform: API_PLATFORM, platform_message_id: `${body}:${messageId}` },
    ...{ sender: call.caller.subject, content, media: null, received_at: now },
    ...{ alone: true, reply_to: "", is_direct: true, is_data: true, depth: 0 },
  };
  const reason = "the request names the worker as its model";
  const keys = { session_key, message_id: messageId };
  return {
    statements: [
      ...insertInbound(message, deps.limits.max_waiting_messages),
      ...takeMessage(messageId, "task", now),
      ...storeTrace([messageId], call.trace, now),
      recordBy(call, now, { kind: "message.received", ...keys }),
      recordBy(call, now, { kind: "message.routed", ...keys, data: { reason } }),
      ...statements,
    ],
    response: { message_id: messageId, session_key, received_at: now, model: request.model },
    ...(lost === undefined ? {} : { lost }),
  };
}

function checkScopes({ caller }: Call): void {
  for (const wanted of ["write:chat", "write:tasks"] as const) {
    if (mayCall(caller, wanted)) continue;
    throw new ServiceError("forbidden", `Cannot do this: the token lacks the scope ${wanted}`, {
      required_scope: wanted,
    });
  }
}

/** Finds the worker with this id, or the only one with this name. Throws `not_found` with the candidates. */
async function findModel({ db }: Deps<"db">, model: string): Promise<string> {
  const [found, other] = await listWorkerIds(db, model);
  if (found !== undefined && other === undefined) return found;
  const workers = await listCandidates(db);
  const named = workers.filter(({ name }) => normalizeName(name) === normalizeName(model));
  const ids = named.slice(0, CANDIDATES_SHOWN_MAX).map(({ id }) => id);
  const detail = found === undefined
    ? `no worker has this id or name.${formatSuggestion(findClosest(model, workers.map(({ name }) => name)))}`
    : `several workers have this name. Use an id: ${ids.join(", ")}`;
  throw new ServiceError(
    "not_found",
    `Cannot find model ${JSON.stringify(model.slice(0, MODEL_SHOWN_CHARACTERS))}: ${detail}`,
    { errors: [{ path: "model", message: detail }] },
  );
}

const CANDIDATES_SHOWN_MAX = 10;
const MODEL_SHOWN_CHARACTERS = 200;

/** The state of a message of an API client. */
type CompletionState =
  | { is: "open"; executionIds: string[] }
  | { is: "ended"; result: CompletionResult }
  | { is: "blocked" | "failed"; error: ServiceError };

/** Reads how far a message is. */
export async function readCompletion(
  { db, clock }: Deps<"db" | "clock">,
  { message_id }: PendingCompletion,
): Promise<CompletionState> {
  const tasks = await listCompletionTasks(db, message_id);
  const open = tasks.filter(({ status }) => !isEndedTask(status));
  const [first] = open;
  if (first !== undefined && open.every(isBlocked)) {
    return { is: "blocked", error: buildBlockedError(first, clock.now()) };
  }
  if (open.length > 0 || tasks[0]?.is_asked === 1) {
    return { is: "open", executionIds: open.flatMap(({ execution_id }) => execution_id ?? []) };
  }
  const [last] = tasks;
  if (last?.status !== "completed") {
    const reason = last === undefined ? "its task was deleted" : last.reason || "it was cancelled";
    return { is: "failed", error: new RunFailure("bad_gateway", `The worker gave no answer: ${reason}`) };
  }
  const outcome = await findOutcome(db, message_id);
  return {
    is: "ended",
    result: {
      content: outcome?.content ?? "",
      input_tokens: outcome?.input_tokens ?? 0,
      output_tokens: outcome?.output_tokens ?? 0,
    },
  };
}

// A job that has been launched starts the task soon.
function isBlocked({ status, held, paused }: CompletionTask): boolean {
  const isHeld = held !== "" && !isLaunchHold(held);
  return status === "pending" && (isHeld || paused === 1);
}

function buildBlockedError({ held, held_until, reason }: CompletionTask, now: number): ServiceError {
  const kind = held.slice(0, held.indexOf(":")).replace("reserve", "engine") as keyof typeof HOLD_ADVICE;
  const seconds = held_until === null
    ? RETRY_AFTER_DEFAULT_S
    : Math.max(1, Math.ceil((held_until - now) / 1000));
  // The reasons of a launcher have the output of its command and paths of other machines.
  const detail = isLauncherHold(held)
    ? "Cannot answer now: no runner can be started for the worker. The operator sees why with: svc ctl launcher list"
    : held === ""
    ? "Cannot answer now: the worker is paused. Resume it with: svc ctl worker resume <name>"
    : `Cannot answer now: ${reason}. ${HOLD_ADVICE[kind]}`;
  return new ServiceError(kind === "budget" ? "budget" : "rate_limited", detail, { retry_after_s: seconds });
}

type EndDeps = Deps<"db" | "clock" | "interruptRun">;

/**
 * Waits for the reply to a message. Throws the error of a run without a reply, `rate_limited` or `budget` for a message that cannot be
 * answered now, whose tasks it cancels, and `unavailable` when the service stops.
 */
export async function waitForCompletion(
  deps: EndDeps & Deps<"wakeups" | "lifecycle">,
  call: Call,
  completion: PendingCompletion,
  signal: AbortSignal,
): Promise<CompletionResult> {
  const state = await waitFor(deps, call, { timeoutMs: Infinity, signal }, async (waiting) => {
    const now = await readCompletion(deps, completion);
    return now.is !== "open" || waiting !== "on" ? now : null;
  });
  if (state.is === "ended") return state.result;
  if (state.is === "open") throw buildStoppingError();
  if (state.is === "blocked") await endCompletion(deps, call, completion);
  throw state.error;
}

const START_WAIT_MS = 1_000;

/** Waits a moment until a run of the message has started. Throws the errors of waitForCompletion(), which a stream could only send as data. */
export async function awaitStart(
  deps: EndDeps & Deps<"wakeups" | "lifecycle">,
  call: Call,
  completion: PendingCompletion,
  signal: AbortSignal,
): Promise<void> {
  const state = await waitFor(deps, call, { timeoutMs: START_WAIT_MS, signal }, async (waiting) => {
    const now = await readCompletion(deps, completion);
    const isWaiting = now.is === "open" && now.executionIds.length === 0;
    return !isWaiting || waiting !== "on" ? now : null;
  });
  if (state.is === "blocked") await endCompletion(deps, call, completion);
  if (state.is === "blocked" || state.is === "failed") throw state.error;
}

/** Builds the error for a client whose run continues after the next start. */
function buildStoppingError(): ServiceError {
  return new ServiceError("unavailable", "Cannot wait for the answer: the service is stopping. Try again.", {
    retry_after_s: 5,
  });
}

/** Cancels the tasks of a message and ends their runs. The client may repeat the request with the same Idempotency-Key. */
export async function endCompletion(
  deps: EndDeps,
  call: Call,
  { message_id }: PendingCompletion,
): Promise<void> {
  if (call.idempotency !== null) await deps.db.write([deleteAnswer(call.idempotency.key)]);
  for (const { id, status, execution_id } of await listCompletionTasks(deps.db, message_id)) {
    if (isEndedTask(status)) continue;
    try {
      if (status === "running" && execution_id !== null) await cancelExecution(deps, call, execution_id);
      else await cancelTask(deps, call, id);
    } catch (error) {
      // The task has changed meanwhile: it ended, or its run started.
      if (!(error instanceof ServiceError)) throw error;
    }
  }
}

/** Lists the latest steps of a run in progress. */
export function listSteps({ steps }: Deps<"steps">, executionId: string): readonly string[] {
  return steps.list(executionId);
}
