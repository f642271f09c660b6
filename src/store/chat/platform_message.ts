import type { InboundMessage } from "../../domain/chat/message.ts";
import { type Database, guard, insertRow, type Statement } from "../db/database.ts";

// The state of messages from insertRefusedMessage(). The coordinator tries a message at least once before it fails.
const IS_REFUSED = "status = 'failed' and attempt = 0";

/** Finds the message with this id on its platform, and whether it was refused because too many waited. */
export async function findByPlatformId(
  db: Database,
  platform: string,
  platformMessageId: string,
): Promise<{ id: string; over: boolean } | null> {
  const row = await db.first<{ id: string; over: number }>(
    `select id, ${IS_REFUSED} as over from inbound_message where platform = ? and platform_message_id = ?`,
    [platform, platformMessageId],
  );
  return row === null ? null : { id: row.id, over: row.over === 1 };
}

interface LastReceivedRow {
  session_key: string;
  /** The platform's id of the message, null when retention has deleted all. */
  last: string | null;
}

/** Lists conversations of a platform with their last received messages, the latest first. */
export function listLastReceivedRows(
  db: Database,
  platform: string,
  limit: number,
): Promise<LastReceivedRow[]> {
  return db.read<LastReceivedRow>(
    `select session_key, (
        select platform_message_id
        from inbound_message
        where inbound_message.session_key = conversation.session_key
        order by inbound_message.id desc
        limit 1) as last
    from conversation
    where platform = ?
    order by id desc
    limit ?`,
    [platform, limit],
  );
}

/** Returns our message with this id on the platform, or "". */
export async function findOutboundIdBySentAs(
  db: Database,
  sessionKey: string,
  sentAs: string,
): Promise<string> {
  return await db.readValue<string>(
    `select outbound_id as id
    from outbound_part
    join outbound_message on outbound_message.id = outbound_id
    where sent_as = ? and sent_as <> '' and session_key = ?
    order by outbound_id desc`,
    [sentAs, sessionKey],
  ) ?? "";
}

type RefusedMessage =
  & Pick<InboundMessage, "id" | "session_key" | "platform" | "platform_message_id" | "sender" | "sender_name">
  & Pick<InboundMessage, "content" | "received_at">
  & { is_data: boolean };

/** Stores a refused message as failed, so that it is visible (contract 10.1). */
export function insertRefusedMessage(message: RefusedMessage, error: string): Statement {
  const { id, session_key, platform, platform_message_id, sender, sender_name } = message;
  const { content, is_data, received_at } = message;
  const origin = { id, session_key, platform, platform_message_id, sender, sender_name };
  return insertRow("inbound_message", {
    ...origin,
    content,
    is_data,
    media: "null",
    status: "failed",
    routed: "nobody",
    error,
    due_at: received_at,
    received_at,
    processed_at: received_at,
  });
}

/** Deletes a refused message, guarded by its existence, for a new try of its sender. */
export function deleteRefusedMessage(id: string): Statement[] {
  return guard(`delete from inbound_message where id = ? and ${IS_REFUSED}`, [id]);
}

/** Whether the latest message of a conversation failed with this error, so that the notice is not repeated. */
export async function hasLastError(db: Database, sessionKey: string, error: string): Promise<boolean> {
  const sql = "select error from inbound_message where session_key = ? order by id desc limit 1";
  return await db.readValue<string>(sql, [sessionKey]) === error;
}
