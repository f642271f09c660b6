import { type Database, guarded, type Row, type Statement } from "../db/database.ts";

// As insertOver() stores it: what the coordinator gives up was tried at least once.
const OVER = "status = 'failed' and attempt = 0";

/** The message with this id on its platform, and whether it was not taken, because too many waited; or null. */
export async function findByPlatformId(
  db: Database,
  platform: string,
  platformMessageId: string,
): Promise<{ id: string; over: boolean } | null> {
  const row = await db.first<{ id: string; over: number }>(
    `select id, ${OVER} as over from inbound_message where platform = ? and platform_message_id = ?`,
    [platform, platformMessageId],
  );
  return row === null ? null : { id: row.id, over: row.over === 1 };
}

/** A conversation and the last message that came in there. */
interface LastHeardRow extends Row {
  session_key: string;
  /** As it is called here; null when retention took all of them. */
  last: string | null;
}

/** Up to `limit` conversations of a platform, the latest first, each with the last message that came in. */
export function listLastHeard(db: Database, platform: string, limit: number): Promise<LastHeardRow[]> {
  return db.read<LastHeardRow>(
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

/** Our message of this conversation that the platform calls so, or "". */
export async function findSentAs(db: Database, sessionKey: string, sentAs: string): Promise<string> {
  const row = await db.first<{ id: string }>(
    `select outbound_id as id
    from outbound_part
    join outbound_message on outbound_message.id = outbound_id
    where sent_as = ? and sent_as <> '' and session_key = ?
    order by outbound_id desc`,
    [sentAs, sessionKey],
  );
  return row?.id ?? "";
}

/** A message that was not taken, because too many wait. */
interface OverMessage {
  id: string;
  session_key: string;
  platform: string;
  platform_message_id: string;
  sender: string;
  sender_name: string;
  content: string;
  is_data: boolean;
  received_at: number;
}

/** Stores a message as failed: nobody takes it, and it can be seen (contract 10.1). */
export function insertOver(message: OverMessage, error: string): Statement {
  const {
    id,
    session_key,
    platform,
    platform_message_id,
    sender,
    sender_name,
    content,
    is_data,
    received_at,
  } = message;
  return {
    sql:
      `insert into inbound_message (id, session_key, platform, platform_message_id, sender, sender_name, content,
        media, is_data, status, routed, error, due_at, received_at, processed_at)
      values (?, ?, ?, ?, ?, ?, ?, 'null', ?, 'failed', 'nobody', ?, ?, ?, ?)`,
    args: [
      id,
      session_key,
      platform,
      platform_message_id,
      sender,
      sender_name,
      content,
      is_data,
      error,
      received_at,
      received_at,
      received_at,
    ],
  };
}

/** Takes away what insertOver() stored, guarded by its being there: its sender tries again. */
export function deleteOver(id: string): Statement[] {
  return guarded(`delete from inbound_message where id = ? and ${OVER}`, [id]);
}

/** Whether the latest message of a conversation failed with this error, so that it is not said again. */
export async function wasOver(db: Database, sessionKey: string, error: string): Promise<boolean> {
  const row = await db.first<{ error: string }>(
    "select error from inbound_message where session_key = ? order by id desc limit 1",
    [sessionKey],
  );
  return row?.error === error;
}
