import { WAKEUP } from "../../base/wakeups.ts";
import type { Json } from "../../domain/call/json.ts";
import type { RunKeys } from "../../domain/call/run_identity.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { DENY } from "../../domain/call/vocabulary.ts";
import { CALL_SHOWN_MAX_CHARACTERS } from "../../domain/work/approval.ts";
import {
  OPEN_QUESTIONS_MAX,
  type OpenQuestion,
  type Question,
  type QuestionFilter,
  questionSchema,
} from "../../domain/work/question.ts";
import { type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { buildWhere, type Filters, limitToConversation, matchColumns, matchReference } from "../db/filter.ts";
import { list, parseNullableJson, readBoundJson } from "../db/list.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";

/** The JSON of listChatOptions(). */
export const CHAT_OPTIONS =
  `iif(tool <> '' and length(arguments) > ${CALL_SHOWN_MAX_CHARACTERS}, json_array('${DENY}'), options)`;

const QUESTIONS = {
  table: "question",
  json: buildJsonSql("question", questionSchema, { default: "question.default_answer" }),
  texts: ["text", "arguments", "answer"],
};

export interface NewQuestion extends Omit<Question, "truncated"> {
  asked_by: string;
  own_session: boolean;
  work_dir: string;
  /** The path of a file tool whose call needs approval, or "". */
  path: string;
  /** Key of a call that needs approval, or "". */
  call_key: string;
}

/**
 * Whether two questions of one task are equal (contract 12). The arguments come from listEqualArgs(). Each tool call has its own
 * question, so that one answer allows one call.
 */
const EQUAL =
  `task_id = ? and task_id <> '' and status = 'open' and text = ? and options = ? and default_answer = ?
  and tool = '' and ? = ''`;

function listEqualArgs({ task_id, text, options, default: fallback, tool }: Question) {
  return [task_id, text, JSON.stringify(options), fallback, tool];
}

/** Stores an open question, guarded by no equal one of its task, and by the limit of open questions of its conversation. */
export function insertQuestion(question: NewQuestion): Statement[] {
  const { default: default_answer, ...rest } = question;
  const row = { ...rest, options: JSON.stringify(question.options), default_answer };
  const isAllowed = {
    sql: `not exists (select 1 from question where ${EQUAL})
        and (select count(*) from question where session_key = ? and status = 'open') < ?`,
    args: [...listEqualArgs(question), question.session_key, OPEN_QUESTIONS_MAX],
  };
  return insertGuarded("question", row, isAllowed, WAKEUP.question);
}

/** Finds the equal open question of the same task, or null. */
export async function findEqualQuestion(db: Database, question: NewQuestion): Promise<Question | null> {
  const rest = `from question where ${EQUAL}`;
  return parseNullableJson(await readJson(db, QUESTIONS.json, rest, listEqualArgs(question)));
}

/** Assigns an open question to another run that asks the same, guarded by the question being open. */
export function adoptQuestion(id: string, executionId: string): Statement[] {
  const sql = "update question set execution_id = ?, waiting = 0 where id = ? and status = 'open'";
  return guard(sql, [executionId, id]);
}

/** Finds the question as JSON text. Null also outside the conversation that the caller is bound to. */
export function findQuestionJson(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<Json<Question> | null> {
  return readBoundJson(db, QUESTIONS, id, boundTo);
}

const FILTERS: Filters<QuestionFilter> = {
  ref: matchReference("question"),
  ...matchColumns("question", ["status", "session_key", "worker_id"]),
};

export function listQuestions(
  db: Database,
  filter: QuestionFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Question>> {
  const where = buildWhere(filter, FILTERS);
  limitToConversation(where, "question.session_key", boundTo);
  return list(db, { ...QUESTIONS, where }, page);
}

/** An open question, with its answers in the chat and the sender of the message that its run works on. */
export type ConversationQuestion = OpenQuestion & RunKeys & { platform: string; sender: string };

export async function listOpenQuestions(
  db: Database,
  sessionKeys: readonly string[],
): Promise<ConversationQuestion[]> {
  const rows = await db.read<Omit<ConversationQuestion, "options"> & { options: string }>(
    `select question.id, question.session_key, worker_id, task_id, execution_id, message_id, tool,
      ${CHAT_OPTIONS} as options, created_at, expires_at, coalesce(platform, '') as platform, coalesce(sender, '') as sender
    from question
    left join inbound_message on inbound_message.id = message_id
    where question.status = 'open' and question.session_key in (select value from json_each(?))
    order by question.id`,
    [JSON.stringify(sessionKeys)],
  );
  return rows.map((row) => ({ ...row, options: JSON.parse(row.options) }));
}

/** An expired question that is still open. */
export type DueQuestion = RunKeys & Pick<Question, "id" | "default">;

/** Lists expired questions that are still open, the earliest expiry first. */
export function listDueQuestions(db: Database, now: number, limit: number): Promise<DueQuestion[]> {
  return db.read<DueQuestion>(
    `select id, session_key, worker_id, task_id, execution_id, message_id, default_answer as "default"
    from question
    where status = 'open' and expires_at <= ?
    order by expires_at
    limit ?`,
    [now, limit],
  );
}

/** Returns the earliest expiry of all open questions, or null. */
export function findNextExpiry(db: Database): Promise<number | null> {
  return db.readValue<number>("select min(expires_at) as at from question where status = 'open'");
}

/** Returns the question of an outbound message, or "". */
export async function findQuestionOfMessage(db: Database, outboundId: string): Promise<string> {
  const sql = "select question_id from outbound_message where id = ?";
  return await db.readValue<string>(sql, [outboundId]) ?? "";
}

/** For an answer task, returns the instruction of the task that asked. "" for any other task. */
export async function findAskerInstruction(db: Database, taskId: string): Promise<string> {
  return await db.readValue<string>(
    `select task.instruction
    from question
    join task on task.id = question.task_id
    where question.answer_task_id = ?`,
    [taskId],
  ) ?? "";
}

/** Whether the answered question came from a run with its own engine session. */
export async function hasOwnSession(db: Database, taskId: string): Promise<boolean> {
  const sql = "select 1 as one from question where answer_task_id = ? and own_session = 1";
  return await db.first(sql, [taskId]) !== null;
}
