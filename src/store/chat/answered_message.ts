import type { Statement } from "../db/database.ts";
import { takeMessage } from "./inbound.ts";
import { record, recordIdle } from "../events/journal.ts";
import type { ConversationQuestion } from "../work/question.ts";
import { answerQuestion } from "../work/question_transitions.ts";

interface MessageAnswer {
  message: { id: string; session_key: string };
  question: Omit<ConversationQuestion, "options" | "created_at" | "expires_at">;
  answer: string;
  by: string;
  taskId: string;
}

/** received -> bee_processed: the message answers the question and is not routed. Guarded by both. */
export function answerByMessage(
  { message, question, answer, by, taskId }: MessageAnswer,
  now: number,
): Statement[] {
  const { id, session_key } = message;
  return [
    ...takeMessage(id, "task", now),
    ...answerQuestion(question, { answer, by, messageId: id, taskId }, now),
    record(now, {
      kind: "message.routed",
      session_key,
      message_id: id,
      data: { reason: `answers question ${question.id}` },
    }),
    recordIdle(now, session_key),
  ];
}
