import { WAKEUP } from "../../base/wakeups.ts";
import type { Json } from "../../domain/call/json.ts";
import type { OutboundMessage } from "../../domain/chat/message.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";
import { OUTBOUND_JSON } from "./outbound.ts";
import { firstShown } from "../db/json_projection.ts";

/** An outbound message, or null. */
export function findOutbound(db: Database, id: string): Promise<Json<OutboundMessage> | null> {
  return firstShown(db, OUTBOUND_JSON, "from outbound_message where id = ?", [id]);
}

/** A message whose delivery was given up. */
interface GivenUp extends Row {
  id: string;
  session_key: string;
  message_id: string;
}

/** Messages to a platform that were given up, stored at or after `since`, oldest first. */
export function listGivenUp(
  db: Database,
  platform: string,
  since: number,
  limit: number,
): Promise<GivenUp[]> {
  return db.read<GivenUp>(
    `select id, session_key, message_id
    from outbound_message
    where status = 'failed' and due_at is null and created_at >= ? and platform = ?
    order by created_at, id
    limit ?`,
    [since, platform, limit],
  );
}

/** failed for good -> failed (waiting): what did not arrive is sent again, as if it had never been tried (contract 10.3). Guarded. */
export function resendOutbound(id: string, now: number): Statement[] {
  return [
    ...guarded(
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
