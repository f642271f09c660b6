import { WAKEUP } from "../../base/wakeups.ts";
import { type InboundFilter, type InboundMessage, inboundSchema } from "../../domain/chat/message.ts";
import type { RoutedTo } from "../../domain/call/vocabulary.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { list, parseNullableJson } from "../db/list.ts";
import { MESSAGE_IS_UNROUTED } from "../db/status_sql.ts";
import { buildJsonSql } from "../db/json_projection.ts";
import {
  addTimeRange,
  buildWhere,
  BY_LIST,
  type Filters,
  limitToConversation,
  matchColumns,
  matchReference,
  matchText,
} from "../db/filter.ts";
import type { Json } from "../../domain/call/json.ts";

export const INBOUND = {
  table: "inbound_message",
  json: buildJsonSql("inbound_message", inboundSchema),
  texts: ["content", "error"],
};

type NewInbound =
  & Pick<
    InboundMessage,
    "id" | "session_key" | "platform" | "platform_message_id" | "sender" | "content" | "media" | "received_at"
  >
  & {
    /** Not merged with other messages (contract 8.8). */
    alone: boolean;
    /** Our message that it replies to, "" for none. */
    reply_to: string;
    /** Sent in a direct conversation with the bee. */
    is_direct: boolean;
    /** Number of agents' tasks in a row that led to it (contract 2.9). */
    depth: number;
  }
  & Partial<PlatformFields>;

interface PlatformFields {
  sender_name: string;
  /** Sent by a program, so never a mention, a command or an answer (contract 10). */
  is_data: boolean;
  /** A file that has yet to be fetched, as JSON. */
  attachment: string;
}

/** SQL of the number of agents' tasks in a row that led to a message or a part of it. */
export const MESSAGE_DEPTH = `max(inbound_message.depth, coalesce(
        (select max(part.depth) from inbound_message as part where part.merged_into = inbound_message.id), 0))`;

export const JOIN_CHAT_SESSION = "left join chat_session on 'local:' || chat_session.id = session_key";

/**
 * SQL for the worker that a message is for: its session's default worker, or on a platform the worker that the message or one of its parts
 * replies to.
 */
export const MESSAGE_WORKER = `coalesce(chat_session.worker_id, (
        select source_id
        from outbound_message
        where inbound_message.platform <> 'local' and source_type = 'worker' and outbound_message.id in (
          select part.reply_to
          from inbound_message as part
          where part.id = inbound_message.id or part.merged_into = inbound_message.id)
        limit 1))`;

/** Stores a message as received. Guarded: its session must have fewer than `waitingMax` messages that are not routed yet. */
export function insertInbound(message: NewInbound, waitingMax: number): Statement[] {
  const { session_key, attachment = "", received_at } = message;
  const row = {
    ...message,
    media: JSON.stringify(message.media),
    status: "received",
    due_at: received_at,
  };
  const hasSpace = {
    sql: `(select count(*) from inbound_message where status ${MESSAGE_IS_UNROUTED} and session_key = ?) < ?`,
    args: [session_key, waitingMax],
  };
  const wakeup = attachment === "" ? WAKEUP.intake : WAKEUP.attachments;
  return insertGuarded("inbound_message", row, hasSpace, wakeup);
}

/** received -> bee_processed without the coordinator, for a message that answers a question or may answer several (contract 12). */
export function takeMessage(id: string, routed: RoutedTo, now: number): Statement[] {
  return guard(
    `update inbound_message
    set status = 'bee_processed', routed = ?, processed_at = ?
    where id = ? and status = 'received'`,
    [routed, now, id],
    // Messages that waited for this one may be complete now.
    WAKEUP.intake,
  );
}

/** received -> feeding for the last part, received -> merged for earlier parts (contract 4.2). `dueAt`: now, or the receipt before a start. */
export function feedMessage(id: string, partIds: string[], now: number, dueAt: number = now): Statement[] {
  return [
    ...guard(
      "update inbound_message set status = 'feeding', due_at = ? where id = ? and status = 'received'",
      [dueAt, id],
      WAKEUP.bee,
    ),
    ...partIds.flatMap((partId) =>
      guard(
        `update inbound_message
        set status = 'merged', merged_into = ?, processed_at = ?
        where id = ? and status = 'received'`,
        [id, now, partId],
      )
    ),
  ];
}

/** Counts an attempt to route a feeding message before the attempt starts, so that an attempt that crashes the service is counted, too. */
export function countMessageAttempt(id: string, attempt: number): Statement[] {
  const sql = "update inbound_message set attempt = ? where id = ? and status = 'feeding' and attempt = ?";
  return guard(sql, [attempt, id, attempt - 1]);
}

/** Makes a feeding message due now and removes its last attempt, because a graceful stop uses up none. */
export function releaseMessage(id: string, now: number): Statement[] {
  return guard(
    "update inbound_message set attempt = attempt - 1, due_at = ? where id = ? and status = 'feeding'",
    [now, id],
  );
}

/** feeding -> bee_processed. The next message of its conversation can be routed. */
export function finishMessage(id: string, routed: RoutedTo, now: number): Statement[] {
  return guard(
    `update inbound_message
    set status = 'bee_processed', routed = ?, processed_at = ?, error = ''
    where id = ? and status = 'feeding'`,
    [routed, now, id],
    WAKEUP.bee,
  );
}

/** feeding -> failed: the coordinator gave up. */
export function failMessage(id: string, error: string, now: number): Statement[] {
  return guard(
    `update inbound_message
    set status = 'failed', routed = 'nobody', processed_at = ?, error = ?
    where id = ? and status = 'feeding'`,
    [now, error, id],
    WAKEUP.bee,
  );
}

/** Delays a feeding message until `dueAt`. */
export function postponeMessage(id: string, error: string, dueAt: number): Statement[] {
  return guard(
    "update inbound_message set error = ?, due_at = ? where id = ? and status = 'feeding'",
    [error, dueAt, id],
    WAKEUP.bee,
  );
}

/** Unrouted messages of a session -> failed, for a clear or a deletion. */
export function failUnroutedMessages(sessionKey: string, error: string, now: number): Statement {
  return {
    sql: `update inbound_message
      set status = 'failed', error = ?, processed_at = ?
      where session_key = ? and status ${MESSAGE_IS_UNROUTED}`,
    args: [error, now, sessionKey],
  };
}

/** A received message in the debounce window. */
export interface WaitingMessage {
  id: string;
  session_key: string;
  platform: string;
  received_at: number;
  alone: number;
  /** Size of its text. */
  bytes: number;
  sender: string;
  is_data: number;
  is_direct: number;
  /** 1 when it looks like a command. */
  command: number;
  /** 1 when its file has yet to be fetched. */
  has_file: number;
  /** 1 when the content has an `@`. */
  has_mention: number;
  /** The session's default worker, or on a platform the worker that the message replies to. */
  worker_id: string | null;
}

/** Lists received messages by session in order of arrival. */
export function listReceived(db: Database, limit: number): Promise<WaitingMessage[]> {
  return db.read<WaitingMessage>(
    `select inbound_message.id, session_key, platform, received_at, alone, octet_length(content) as bytes, sender, is_data,
      is_direct, ltrim(content, ' ' || char(9, 10, 13)) glob '[/!／！][a-zA-Z]*' as command, attachment <> '' as has_file,
      instr(content, '@') > 0 as has_mention, ${MESSAGE_WORKER} as worker_id
    from inbound_message
    ${JOIN_CHAT_SESSION}
    where status = 'received'
    order by session_key, inbound_message.id
    limit ?`,
    [limit],
  );
}

/** Finds the inbound message with this id, or with this id on its platform. */
export async function findInbound(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<InboundMessage | null> {
  const row = await db.first<{ json: Json<InboundMessage> }>(
    `select ${INBOUND.json} as json
    from inbound_message
    where (id = ? or id = (select id from inbound_message where platform_message_id = ? order by id desc limit 1))
      and (? is null or session_key = ?)
    order by id = ? desc
    limit 1`,
    [id, id, boundTo, boundTo, id],
  );
  return parseNullableJson(row?.json);
}

const FILTERS: Filters<InboundFilter> = {
  ref: matchReference("inbound_message"),
  ...matchColumns("inbound_message", ["session_key", "platform", "status"]),
  text: matchText("inbound_message", ["content", "sender_name"]),
  received_from: BY_LIST,
  received_to: BY_LIST,
};

const RECEIVED = { table: "inbound_message", column: "received_at", index: "inbound_received" };

export async function listInbound(
  db: Database,
  filter: InboundFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<InboundMessage>> {
  const where = buildWhere(filter, FILTERS);
  limitToConversation(where, "inbound_message.session_key", boundTo);
  const bounds = { from: filter.received_from, to: filter.received_to };
  const from = await addTimeRange(db, where, RECEIVED, bounds);
  return list(db, { ...INBOUND, from, where, counter: { name: "message", key: "inbound" } }, page);
}
