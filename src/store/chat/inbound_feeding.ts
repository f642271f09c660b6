import type { InboundMessage } from "../../domain/chat/message.ts";
import type { Database } from "../db/database.ts";
import { JOIN_CHAT_SESSION, MESSAGE_DEPTH, MESSAGE_WORKER } from "./inbound.ts";
import { MESSAGE_IS_UNROUTED } from "../db/status_sql.ts";

/** A message to route. `worker_id` is the session's default worker, or on a platform the worker that the message replies to. */
export interface FeedingMessage
  extends Pick<InboundMessage, "id" | "session_key" | "platform" | "attempt" | "error"> {
  due_at: number;
  worker_id: string | null;
  /** 1 for a message of a program, which goes to the worker of its platform. */
  is_data: number;
  /** Number of agents' tasks in a row that led to it or to a part of it (contract 2.9). */
  depth: number;
}

const FEEDING =
  `select inbound_message.id, session_key, platform, attempt, due_at, is_data, error, ${MESSAGE_DEPTH} as depth,
      ${MESSAGE_WORKER} as worker_id
    from inbound_message
    ${JOIN_CHAT_SESSION}`;

/** Finds a received message for routing. Null while another message of its session is being routed. */
export function findMessageToFeed(db: Database, id: string): Promise<FeedingMessage | null> {
  return db.first<FeedingMessage>(
    `${FEEDING}
    where inbound_message.id = ? and status = 'received' and not exists (
      select 1
      from inbound_message as earlier
      where earlier.status = 'feeding' and earlier.status ${MESSAGE_IS_UNROUTED}
        and earlier.session_key = inbound_message.session_key)`,
    [id],
  );
}

/** Lists the oldest feeding message of each session, earliest due first, so that each conversation is routed in order. */
export function listFeeding(db: Database, limit: number): Promise<FeedingMessage[]> {
  return db.read<FeedingMessage>(
    `${FEEDING}
    where inbound_message.id in (select min(id) from inbound_message where status = 'feeding' group by session_key)
    order by due_at, inbound_message.id
    limit ?`,
    [limit],
  );
}
