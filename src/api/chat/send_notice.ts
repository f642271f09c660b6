import { createId } from "../../base/id.ts";
import { buildOutbound } from "../../domain/chat/message.ts";
import type { Statement } from "../../store/db/database.ts";
import { sendMessage } from "../../store/chat/outbound.ts";

/** Builds the statements that send a notice of the service to a platform's conversation. */
export function buildNotice(
  platform: string,
  key: string,
  messageId: string,
  content: string,
  now: number,
): Statement[] {
  return sendMessage(buildOutbound({
    id: createId(),
    session_key: key,
    platform,
    message_id: messageId,
    content,
    source_type: "system",
    source_id: "",
  }, now));
}
