import { createId } from "../../base/id.ts";
import { conflict, invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import { type Json, parseJson } from "../../domain/call/json.ts";
import {
  findAnswerFault,
  normalizeAnswer,
  type Question,
  type QuestionFilter,
} from "../../domain/work/question.ts";
import type { Database } from "../../store/db/database.ts";
import { updateReservationWait } from "../../store/workers/budget_ledger.ts";
import { findQuestionJson, listQuestions as listQuestionRows } from "../../store/work/question.ts";
import {
  answerQuestion as answerRow,
  cancelQuestion as cancelRow,
  markAnswerSeen,
  setQuestionWaiting,
} from "../../store/work/question_transitions.ts";
import { type Answer, answerPage, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { waitFor, type WaitLimits } from "../call/long_poll.ts";

/** Lists questions, newest first. A run sees only the questions of its conversation. */
export async function listQuestions({ db }: Deps<"db">, call: Call, filter: QuestionFilter) {
  return answerPage(await listQuestionRows(db, filter, getOwnConversation(call), filter));
}

export async function getQuestion({ db }: Deps<"db">, call: Call, id: string): Promise<Answer<Question>> {
  return { json: await findVisible(db, call, id) };
}

async function findVisible(db: Database, call: Call, id: string): Promise<Json<Question>> {
  return requireFound(await findQuestionJson(db, id, getOwnConversation(call)), "question", id);
}

// Even a run with *:* does not see the questions of other conversations.
function getOwnConversation({ caller }: Call): string | null {
  return caller.run?.session_key ?? null;
}

/** Stores a person's answer once. Throws `not_found`, or `conflict` when the question is not open. */
export async function answerQuestion(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  id: string,
  words: string,
): Promise<Answer<Question>> {
  const question = parseJson(await findVisible(db, call, id));
  const answer = normalizeAnswer(question, words);
  const fault = findAnswerFault(question, answer);
  if (fault !== null) throw invalid("answer", fault);
  const given = {
    answer,
    by: call.caller.subject,
    messageId: "",
    taskId: createId(),
  };
  await db.writeOr(answerRow(question, given, clock.now()), () => explainRefusal(db, call, id, "answer"));
  return { json: await findVisible(db, call, id) };
}

/** Cancels an open question. Throws `not_found` or `conflict`. */
export async function cancelQuestion({ db, clock }: Deps<"db" | "clock">, call: Call, id: string) {
  const question = parseJson(await findVisible(db, call, id));
  await db.writeOr(
    cancelRow(question, call.caller.subject, clock.now()),
    () => explainRefusal(db, call, id, "cancel"),
  );
  return { json: await findVisible(db, call, id) };
}

async function explainRefusal(db: Database, call: Call, id: string, verb: string): Promise<ServiceError> {
  const json = await findQuestionJson(db, id, getOwnConversation(call));
  if (json === null) return notFound("question", id);
  const { status, answered_by } = parseJson(json);
  const why = status === "open"
    ? "it expired"
    : `it is ${status}${answered_by === "" ? "" : ` by ${answered_by}`}`;
  return conflict(`Cannot ${verb} question ${id}: ${why}`);
}

/**
 * Waits until the question is closed, or returns it unchanged after `timeoutMs`. The run that asked frees its slot for
 * the time of the wait, and the returned answer counts as seen (contract 12). Throws `not_found`.
 */
export async function waitForQuestion(
  deps: Deps<"db" | "clock" | "wakeups" | "lifecycle" | "waits">,
  call: Call,
  id: string,
  limits: WaitLimits,
): Promise<Answer<Question>> {
  const wait: { end?: () => Promise<void> } = {};
  try {
    return await waitFor(deps, call, limits, async (waiting) => {
      const json = await findVisible(deps.db, call, id);
      const question = parseJson(json);
      if (question.status === "answered" && waiting !== "gone") {
        return await markSeen(deps, call, question, json);
      }
      if (question.status !== "open" || waiting !== "on") return { json };
      wait.end ??= await startWait(deps, call, question);
      return null;
    });
  } finally {
    await wait.end?.();
  }
}

async function markSeen(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  question: Question,
  json: Json<Question>,
): Promise<Answer<Question>> {
  const { run } = call.caller;
  if (run === null || question.seen_at !== null) return { json };
  await db.write([markAnswerSeen(question.id, run.execution_id, clock.now())]);
  return { json: await findVisible(db, call, question.id) };
}

// Only the run that asked frees its slot while it waits.
async function startWait(
  { db, clock, waits }: Deps<"db" | "clock" | "waits">,
  call: Call,
  question: Question,
): Promise<() => Promise<void>> {
  const { run } = call.caller;
  if (run === null || run.execution_id !== question.execution_id) return () => Promise.resolve();
  const { execution_id } = run;
  const note = async (waiting: boolean) => {
    const statements = [
      setQuestionWaiting(question.id, execution_id, waiting),
      updateReservationWait(execution_id, waiting, clock.now()),
    ];
    await db.write(statements).catch(() => {});
  };
  if (waits.begin(execution_id)) await note(true);
  return async () => {
    if (waits.end(execution_id)) await note(false);
  };
}
