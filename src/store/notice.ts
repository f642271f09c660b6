import { newId } from "../base/id.ts";
import { hasConversation, outboundOf, platformOf } from "../domain/message.ts";
import type { Notice } from "../domain/notice.ts";
import type { Statement } from "./database.ts";
import { sendMessage, type When } from "./outbound.ts";

/**
 * Puts a notice into the conversation that the thing belongs to, as a message of the system; without a conversation there
 * is none, and the inbox shows the thing (contract 11). Put it into the batch of the move that it tells of. `when` is for
 * a move that decides in SQL whether there is anything to tell.
 */
export function insertNotice(notice: Notice, now: number, when?: When): Statement[] {
  const { session_key, message_id, about, content, execution_id = "" } = notice;
  if (session_key === "" || !hasConversation(session_key)) return [];
  const said = {
    id: newId(),
    session_key,
    platform: platformOf(session_key),
    message_id,
    execution_id,
    content,
    source_type: "system" as const,
    source_id: about,
  };
  return sendMessage(outboundOf(said, now), { when, data: { notice: notice.kind } });
}
