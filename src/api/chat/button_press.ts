import { newId } from "../../base/id.ts";
import { readChoice } from "../../domain/call/choice.ts";
import { furtherId, platformKey, platformMessageId } from "../../domain/chat/platform.ts";
import type { Incoming, Received } from "../../platform/platform.ts";
import { answerWith } from "../../store/chat/answered_message.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { insertInbound } from "../../store/chat/inbound.ts";
import { record } from "../../store/events/journal.ts";
import { listOpenQuestions } from "../../store/work/question.ts";
import type { Deps } from "../call/services.ts";
import { type PlatformRules, senderActor } from "../call/platforms.ts";

const LATE: Received = { outcome: "late", message_id: "" };

/**
 * Stores a button press in one batch as a message with the option's text and as the answer. Stores nothing when this
 * conversation's question is closed (contract 12).
 */
export async function receiveClick(
  { db, clock, limits }: Deps<"db" | "clock" | "limits">,
  { name }: PlatformRules,
  incoming: Incoming,
): Promise<Received> {
  const { chat, id, sender, isDirect } = incoming;
  const now = clock.now();
  const key = platformKey(name, incoming);
  const chosen = readChoice(incoming.choice);
  if (chosen === null) return LATE;
  const open = await listOpenQuestions(db, [key]);
  const question = open.find((one) => one.id === chosen.questionId);
  const answer = question?.options[chosen.option];
  if (question === undefined || answer === undefined) return LATE;
  const by = senderActor(name, sender.id);
  const message = {
    id: newId(),
    session_key: key,
    platform: name,
    platform_message_id: platformMessageId(chat, furtherId(incoming.repliesTo, `click-${id}`)),
    sender: sender.id,
    sender_name: sender.name,
    content: answer,
    media: null,
    alone: false,
    reply_to: "",
    depth: 0,
    is_direct: isDirect,
    received_at: now,
  };
  try {
    const { won } = await db.write([
      ...insertInbound(message, limits.max_waiting_messages),
      record(now, { kind: "message.received", session_key: key, message_id: message.id, actor: by }),
      ...answerWith({ message, question, answer, by, taskId: newId() }, now),
    ]);
    return won ? { outcome: "queued", message_id: message.id } : LATE;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    return { outcome: "repeated", message_id: "" };
  }
}
