import { WAKEUP } from "../../base/wakeups.ts";
import type { Json } from "../../domain/call/json.ts";
import type { OutboundMessage } from "../../domain/chat/message.ts";
import { type Database, guard, type Statement } from "../db/database.ts";
import { OUTBOUND } from "./outbound.ts";
import { readJson } from "../db/json_projection.ts";

export function findOutbound(db: Database, id: string): Promise<Json<OutboundMessage> | null> {
  return readJson(db, OUTBOUND.json, "from outbound_message where id = ?", [id]);
}

interface UndeliveredMessage {
  id: string;
  session_key: string;
  message_id: string;
}

/** Lists undelivered messages to a platform that were created at or after `since`, oldest first. */
export function listUndelivered(
  db: Database,
  platform: string,
  since: number,
  limit: number,
): Promise<UndeliveredMessage[]> {
  return db.read<UndeliveredMessage>(
    `select id, session_key, message_id
    from outbound_message
    where status = 'failed' and due_at is null and created_at >= ? and platform = ?
    order by created_at, id
    limit ?`,
    [since, platform, limit],
  );
}

/** failed without retries -> failed with a retry now: sends the missing parts as if never tried (contract 10.3). Guarded. */
export function resendOutbound(id: string, now: number): Statement[] {
  return [
    ...guard(
      `update outbound_message
      set due_at = ?, resent_at = ?, error = ''
      where id = ? and status = 'failed' and due_at is null`,
      [now, now, id],
      WAKEUP.outbox,
    ),
    {
      sql: "update outbound_part set unanswered = 0 where outbound_id = ? and sent_at is null",
      args: [id],
    },
  ];
}
