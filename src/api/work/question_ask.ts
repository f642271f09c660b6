import { createId } from "../../base/id.ts";
import { conflict, invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import { buildScriptSessionKey, computeExpiry } from "../../domain/chat/message.ts";
import {
  findOption,
  OPEN_QUESTIONS_MAX,
  type Question,
  type QuestionCreate,
} from "../../domain/work/question.ts";
import type { RunBinding } from "../../domain/call/scope.ts";
import type { Database } from "../../store/db/database.ts";
import { findInbound } from "../../store/chat/inbound.ts";
import { openQuestion } from "../../store/chat/open_question.ts";
import {
  adoptQuestion,
  findEqualQuestion,
  hasOwnSession,
  type NewQuestion,
} from "../../store/work/question.ts";
import { findTask } from "../../store/work/task.ts";
import { findWorker } from "../../store/workers/worker.ts";
import type { Call } from "../call/call.ts";
import { type Creation, RaceError } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";

type AskDeps = Deps<"db" | "clock" | "limits" | "runLimits">;

/**
 * Asks the people of a conversation. An equal open question of the same task is reused and then belongs to this run
 * (contract 12). Throws `invalid_request`, `not_found`, `conflict`, or `rate_limited` when too many questions are open.
 */
export async function planQuestion(
  deps: AskDeps,
  call: Call,
  input: QuestionCreate,
): Promise<Creation<Question>> {
  const { db, clock, runLimits } = deps;
  const { run, subject } = call.caller;
  const origin = await findOrigin(db, run, input.message_id);
  await runLimits.take(call, "questions");
  await checkDepth(deps, call, input.default);
  const now = clock.now();
  const question: NewQuestion = {
    id: createId(),
    session_key: origin.session_key,
    message_id: origin.message_id,
    task_id: run?.task_id ?? "",
    execution_id: run?.execution_id ?? "",
    worker_id: run?.worker_id ?? "",
    text: input.text,
    tool: "",
    arguments: "",
    path: "",
    call_key: "",
    options: input.options,
    default: findDefault(input),
    status: "open",
    answer: "",
    answered_by: "",
    created_at: now,
    expires_at: computeExpiry(origin.session_key, input.timeout_ms, now),
    answered_at: null,
    seen_at: null,
    asked_by: subject,
    ...await findSession(db, run),
  };
  const buildRace = () =>
    new RaceError("conflict", "Cannot ask: another request asked or answered it first. Try again.");
  const equal = await findEqualQuestion(db, question);
  if (equal !== null) {
    const { execution_id } = question;
    return {
      statements: adoptQuestion(equal.id, execution_id),
      response: { ...equal, execution_id },
      lost: buildRace,
    };
  }
  return {
    statements: openQuestion(question, now),
    response: pickQuestion(question),
    lost: async () => await findEqualQuestion(db, question) === null ? buildTooManyOpen() : buildRace(),
  };
}

function pickQuestion(question: NewQuestion): Question {
  const { asked_by: _by, own_session: _own, work_dir: _dir, path: _path, call_key: _key, ...response } =
    question;
  return response;
}

// A run asks only in its own conversation, even with wider scopes.
async function findOrigin(
  db: Database,
  run: RunBinding | null,
  messageId: string,
): Promise<{ message_id: string; session_key: string }> {
  if (run !== null && run.message_id === messageId) {
    return { message_id: messageId, session_key: run.session_key };
  }
  const message = await findInbound(db, messageId, run?.session_key ?? null);
  if (message !== null) return { message_id: message.id, session_key: message.session_key };
  if (run !== null) throw notFound("message", messageId);
  return { message_id: messageId, session_key: buildScriptSessionKey(messageId) };
}

// A default answer starts the next task without a person. The chain limit must end a loop of such questions.
async function checkDepth(
  { limits, runLimits }: Deps<"limits" | "runLimits">,
  call: Call,
  fallback: string | undefined,
): Promise<void> {
  const { run } = call.caller;
  if (run === null || fallback === undefined || run.depth < limits.max_chain_depth) return;
  await runLimits.recordLimit(call, "chain_depth", limits.max_chain_depth);
  throw conflict(
    `Cannot ask with a default: agents created the last ${run.depth} tasks without a person ` +
      `(limits.max_chain_depth is ${limits.max_chain_depth}). Ask without a default.`,
  );
}

function findDefault(input: QuestionCreate): string {
  if (input.default === undefined) return "";
  if (input.options.length === 0) return input.default.trim();
  const option = findOption(input, input.default);
  if (option === null) throw invalid("default", "must be one of the options");
  return option;
}

// Scheduled runs do not use their conversation's session, so the answer must reach their own.
async function findSession(
  db: Database,
  run: RunBinding | null,
): Promise<{ own_session: boolean; work_dir: string }> {
  if (run === null) return { own_session: false, work_dir: "" };
  const [task, worker, own] = await Promise.all([
    findTask(db, run.task_id),
    findWorker(db, run.worker_id),
    hasOwnSession(db, run.task_id),
  ]);
  return { own_session: own || task?.type !== "immediate", work_dir: worker?.work_dir ?? "" };
}

/** Builds the error for a question in a conversation with the maximum of open ones. */
export function buildTooManyOpen(): ServiceError {
  return new ServiceError(
    "rate_limited",
    `Cannot ask: ${OPEN_QUESTIONS_MAX} questions of this conversation are open. Try again later.`,
    { retry_after_s: 60 },
  );
}
