import { createId } from "../../base/id.ts";
import { buildOutbound, hasConversation, parsePlatformName } from "../../domain/chat/message.ts";
import { listChatOptions } from "../../domain/work/approval.ts";
import { formatQuestion } from "../../domain/work/question.ts";
import { sendMessage } from "./outbound.ts";
import type { Statement } from "../db/database.ts";
import { record } from "../events/journal.ts";
import { insertQuestion, type NewQuestion } from "../work/question.ts";

/** Builds the statements that store a question and send it to its conversation. */
export function openQuestion(question: NewQuestion, now: number): Statement[] {
  return [
    ...insertQuestion(question),
    buildOpenedEvent(question, now),
    ...buildQuestionMessage(question, now),
  ];
}

function buildOpenedEvent(question: NewQuestion, now: number): Statement {
  const { id, session_key, worker_id, task_id, execution_id, message_id, asked_by: actor } = question;
  const keys = { session_key, worker_id, task_id, execution_id, message_id };
  return record(now, { kind: "question.opened", ...keys, actor, data: { question_id: id } });
}

// A question without a conversation appears only in the inbox.
function buildQuestionMessage(question: NewQuestion, now: number): Statement[] {
  const { session_key, message_id, execution_id, worker_id, asked_by } = question;
  if (!hasConversation(session_key)) return [];
  const message = {
    id: createId(),
    session_key,
    platform: parsePlatformName(session_key),
    message_id,
    execution_id,
    content: formatQuestion({ ...question, options: [...listChatOptions(question)] }),
    question_id: question.id,
  };
  const by = worker_id === ""
    ? { source_type: "system" as const, source_id: asked_by }
    : { source_type: "worker" as const, source_id: worker_id };
  return sendMessage(buildOutbound({ ...message, ...by }, now));
}
