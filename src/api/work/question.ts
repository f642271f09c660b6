import { newId } from "../../base/id.ts";
import { conflict, notFound, ServiceError } from "../../domain/call/error.ts";
import { type Json, valueOf } from "../../domain/call/json.ts";
import { answerOf, type Question, type QuestionFilter } from "../../domain/work/question.ts";
import type { Database } from "../../store/db/database.ts";
import { countWaiting } from "../../store/workers/budget_ledger.ts";
import { findQuestionJson, listQuestions as listQuestionRows } from "../../store/work/question.ts";
import {
  answerQuestion as answerRow,
  cancelQuestion as cancelRow,
  seeAnswer,
  setWaiting,
} from "../../store/work/question_transitions.ts";
import { type Answer, page } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { waitFor, type WaitLimits } from "../call/long_poll.ts";

/** GET /api/questions, newest first; of a run only those of its own conversation (contract 9, contract 12). */
export async function listQuestions(
  { db }: Deps<"db">,
  call: Call,
  filter: QuestionFilter,
): Promise<Answer<Question[]>> {
  return page(await listQuestionRows(db, filter, ownConversation(call), filter));
}

/** GET /api/questions/:id. Throws `not_found`. */
export async function getQuestion({ db }: Deps<"db">, call: Call, id: string): Promise<Answer<Question>> {
  return { json: await findVisible(db, call, id) };
}

async function findVisible(db: Database, call: Call, id: string): Promise<Json<Question>> {
  const json = await findQuestionJson(db, id, ownConversation(call));
  if (json === null) throw notFound("question", id);
  return json;
}

// A run that holds *:* sees other conversations elsewhere, but not their questions.
function ownConversation({ caller }: Call): string | null {
  return caller.run?.session_key ?? null;
}

/**
 * POST /api/questions/:id/answer: by a person, once (contract 12). Throws `not_found`, and `conflict` when it is answered, cancelled or
 * its time is over.
 */
export async function answerQuestion(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  id: string,
  words: string,
): Promise<Answer<Question>> {
  const question = valueOf(await findVisible(db, call, id));
  const given = {
    answer: answerOf(question, words),
    by: call.caller.subject,
    messageId: "",
    taskId: newId(),
  };
  await db.writeOr(answerRow(question, given, clock.now()), () => refusal(db, call, id, "answer"));
  return { json: await findVisible(db, call, id) };
}

/** POST /api/questions/:id/cancel: nobody has to answer any more (contract 12). Throws `not_found`, `conflict`. */
export async function cancelQuestion(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  id: string,
): Promise<Answer<Question>> {
  const question = valueOf(await findVisible(db, call, id));
  await db.writeOr(
    cancelRow(question, call.caller.subject, clock.now()),
    () => refusal(db, call, id, "cancel"),
  );
  return { json: await findVisible(db, call, id) };
}

async function refusal(db: Database, call: Call, id: string, verb: string): Promise<ServiceError> {
  const json = await findQuestionJson(db, id, ownConversation(call));
  if (json === null) return notFound("question", id);
  const { status, answered_by } = valueOf(json);
  const why = status === "open"
    ? "its time is over"
    : `it is ${status}${answered_by === "" ? "" : ` by ${answered_by}`}`;
  return conflict(`Cannot ${verb} question ${id}: ${why}`);
}

/**
 * GET /api/questions/:id/wait: answers when the question is open no longer, or after `timeoutMs` with the question as it is. To the run
 * that asked it is the answer itself: it has seen it then, and while it waits, it holds no slot (contract 12). Throws `not_found`.
 */
export async function waitForQuestion(
  needs: Deps<"db" | "clock" | "wakeups" | "lifecycle" | "waits">,
  call: Call,
  id: string,
  limits: WaitLimits,
): Promise<Answer<Question>> {
  const begun: { end?: () => Promise<void> } = {};
  try {
    return await waitFor(needs, call, limits, async (waiting) => {
      const json = await findVisible(needs.db, call, id);
      const question = valueOf(json);
      if (question.status === "answered" && waiting !== "gone") {
        return await seen(needs, call, question, json);
      }
      if (question.status !== "open" || waiting !== "on") return { json };
      begun.end ??= await beginWait(needs, call, question);
      return null;
    });
  } finally {
    await begun.end?.();
  }
}

async function seen(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  question: Question,
  json: Json<Question>,
): Promise<Answer<Question>> {
  const { run } = call.caller;
  if (run === null || question.seen_at !== null || run.execution_id !== question.execution_id) {
    return { json };
  }
  await db.write([seeAnswer(question.id, run.execution_id, clock.now())]);
  return { json: await findVisible(db, call, question.id) };
}

// Only the run that asked stands still while somebody waits.
async function beginWait(
  { db, clock, waits }: Deps<"db" | "clock" | "waits">,
  call: Call,
  question: Question,
): Promise<() => Promise<void>> {
  const { run } = call.caller;
  if (run === null || run.execution_id !== question.execution_id) return () => Promise.resolve();
  const { execution_id } = run;
  const note = async (waiting: boolean) => {
    const statements = [
      setWaiting(question.id, execution_id, waiting),
      countWaiting(execution_id, waiting, clock.now()),
    ];
    await db.write(statements).catch(() => {});
  };
  if (waits.begin(execution_id)) await note(true);
  return async () => {
    if (waits.end(execution_id)) await note(false);
  };
}
