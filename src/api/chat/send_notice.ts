import { newId } from "../../base/id.ts";
import { outboundOf } from "../../domain/chat/message.ts";
import type { Statement } from "../../store/db/database.ts";
import { sendMessage } from "../../store/chat/outbound.ts";

/** The statements that send words of the service itself into a conversation of a platform. */
export function say(
  platform: string,
  key: string,
  messageId: string,
  content: string,
  now: number,
): Statement[] {
  return sendMessage(outboundOf({
    id: newId(),
    session_key: key,
    platform,
    message_id: messageId,
    content,
    source_type: "system",
    source_id: "",
  }, now));
}
