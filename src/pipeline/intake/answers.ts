// Message: received -> bee_processed, when it answers a question.
import { createId } from "../../base/id.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import { findOwnText } from "../../domain/chat/excerpt.ts";
import { buildOutbound } from "../../domain/chat/message.ts";
import { grants } from "../../domain/call/scope.ts";
import { mayAnswer } from "../../domain/work/approval.ts";
import { findAnswerer, type MessageMeaning, readAnswer } from "../../domain/work/question.ts";
import { findTokenScopes } from "../../store/account/token.ts";
import { answerByMessage } from "../../store/chat/answered_message.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { takeMessage, type WaitingMessage } from "../../store/chat/inbound.ts";
import { findMessageText, type MessageText } from "../../store/chat/inbound_part.ts";
import { record, recordIdle } from "../../store/events/journal.ts";
import { sendMessage } from "../../store/chat/outbound.ts";
import {
  type ConversationQuestion,
  findQuestionOfMessage,
  listOpenQuestions,
} from "../../store/work/question.ts";

/**
 * Takes the messages that answer an open question, each with its answer in one batch, and returns the others (contract 12). Answers skip
 * the debounce window, because an answer is never a part of a longer message.
 */
export async function takeAnswers(
  db: Database,
  received: readonly WaitingMessage[],
  now: number,
): Promise<WaitingMessage[]> {
  const candidates = received.filter((message) => findAnswerer(message) !== null);
  const keys = new Set(candidates.map((message) => message.session_key));
  const open = keys.size === 0 ? [] : await listOpenQuestions(db, [...keys]);
  const commands = candidates.filter((message) => message.command === 1);
  if (open.length === 0 && commands.length === 0) return [...received];
  const taken = new Set<string>();
  for (const message of candidates) {
    const here = open.filter((question) => question.session_key === message.session_key);
    if (here.length === 0 && message.command === 0) continue;
    const text = await findMessageText(db, message.id);
    if (text === null) continue;
    const reading = await read(db, message, text, here);
    if (reading.is === "message") continue;
    taken.add(message.id);
    const statements = reading.is === "answer"
      ? buildAnswer(message, reading, here, now)
      : buildReply(message, reading.words, now);
    // A lost guard means that another answer came first, or the message was cleared. The next round reads the message again.
    const { won } = await db.write(statements);
    if (won && reading.is === "answer") {
      open.splice(open.indexOf(reading.question as ConversationQuestion), 1);
    }
  }
  return received.filter((message) => !taken.has(message.id));
}

async function read(
  db: Database,
  message: WaitingMessage,
  { content, media, reply_to }: MessageText,
  here: readonly ConversationQuestion[],
): Promise<MessageMeaning> {
  const meaning = readAnswer(here, {
    // Only text that the sender typed can be an answer.
    content: findOwnText(content),
    hasMedia: media !== "null" || message.has_file === 1,
    receivedAt: message.received_at,
    replyTo: reply_to === "" ? "" : await findQuestionOfMessage(db, reply_to),
    direct: message.is_direct === 1,
  });
  const asked = meaning.is === "answer" ? here.find(({ id }) => id === meaning.question.id) : undefined;
  if (asked !== undefined && !await mayProgramAnswer(db, message)) return { is: "message" };
  const from = { platform: message.platform, sender: message.sender, direct: message.is_direct === 1 };
  return asked === undefined || mayAnswer(asked, from) ? meaning : { is: "unclear", words: NOT_YOURS };
}

// A token that may only write in the chat cannot allow the tool calls of the runs that it starts (contract 12.2).
async function mayProgramAnswer(db: Database, { platform, sender }: WaitingMessage): Promise<boolean> {
  if (platform !== LOCAL_PLATFORM || !sender.startsWith(TOKEN_PREFIX)) return true;
  return grants(await findTokenScopes(db, sender.slice(TOKEN_PREFIX.length)), "write:questions");
}

const TOKEN_PREFIX = "token:";

const NOT_YOURS =
  "Only the person whose message started this run, or a user in the console, can answer about its tool calls.";

function buildAnswer(
  message: WaitingMessage,
  { question, answer }: MessageMeaning & { is: "answer" },
  here: readonly ConversationQuestion[],
  now: number,
): Statement[] {
  const match = here.find((one) => one.id === question.id);
  const by = findAnswerer(message);
  if (match === undefined || by === null) return [];
  return answerByMessage({ message, question: match, answer, by, taskId: createId() }, now);
}

function buildReply(
  { id, session_key, platform }: WaitingMessage,
  content: string,
  now: number,
): Statement[] {
  const reply = { id: createId(), session_key, platform, message_id: id, content };
  return [
    ...takeMessage(id, "reply", now),
    record(now, {
      kind: "message.routed",
      session_key,
      message_id: id,
      data: { reason: "an answer without its question" },
    }),
    ...sendMessage(buildOutbound({ ...reply, source_type: "system", source_id: "" }, now)),
    recordIdle(now, session_key),
  ];
}
