import { WAKEUP } from "../../base/wakeups.ts";
import { type InboundFilter, type InboundMessage, inboundSchema } from "../../domain/chat/message.ts";
import type { RoutedTo } from "../../domain/call/vocabulary.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";
import { list, parsed } from "../db/list.ts";
import { MESSAGE_IS_UNROUTED } from "../db/status_sql.ts";
import { shown } from "../db/json_projection.ts";
import { BY_LIST, type Filters, inConversation, named, oneOf, whereOf, within } from "../db/filter.ts";
import type { Json } from "../../domain/call/json.ts";

/** The JSON of an inbound message. */
export const INBOUND_JSON = shown("inbound_message", inboundSchema, {});

/** Which texts of an inbound message may be large. */
export const INBOUND_TEXTS = ["content", "error"];

/** An inbound message before it is stored. */
type NewInbound =
  & Pick<
    InboundMessage,
    "id" | "session_key" | "platform" | "platform_message_id" | "sender" | "content" | "media" | "received_at"
  >
  & {
    /** Read at once, and merged with no other (contract 8.8). */
    alone: boolean;
    /** The message of ours that it replies to; "" for none. */
    reply_to: string;
    /** Said where nobody else is. */
    is_direct: boolean;
    /** How many tasks of agents led to it (contract 2.9). */
    depth: number;
  }
  & Partial<FromPlatform>;

/** What only messages of platforms have. */
interface FromPlatform {
  sender_name: string;
  /** What a program sent: never a mention, a command or an answer (contract 10). */
  is_data: boolean;
  /** A file that is still on the platform, as JSON. */
  attachment: string;
}

/** Stores an inbound message as received, guarded by fewer than `waitingMax` unrouted ones in its session. */
export function insertInbound(message: NewInbound, waitingMax: number): Statement[] {
  return guarded(
    `insert into inbound_message (id, session_key, platform, platform_message_id, sender, content, media,
        alone, reply_to, is_direct, sender_name, is_data, attachment, depth, status, due_at, received_at)
      select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'received', ?, ?
      where (
        select count(*)
        from inbound_message
        where status ${MESSAGE_IS_UNROUTED} and session_key = ?) < ?`,
    [
      message.id,
      message.session_key,
      message.platform,
      message.platform_message_id,
      message.sender,
      message.content,
      JSON.stringify(message.media),
      message.alone,
      message.reply_to,
      message.is_direct,
      message.sender_name ?? "",
      message.is_data ?? false,
      message.attachment ?? "",
      message.depth,
      message.received_at,
      message.received_at,
      message.session_key,
      waitingMax,
    ],
    message.attachment ? WAKEUP.attachments : WAKEUP.intake,
  );
}

/** received -> bee_processed, past the coordinator: it answers a question, or asked which one (contract 12). */
export function takeMessage(id: string, routed: RoutedTo, now: number): Statement[] {
  return guarded(
    `update inbound_message
    set status = 'bee_processed', routed = ?, processed_at = ?
    where id = ? and status = 'received'`,
    [routed, now, id],
    // What it was to become a part of may be complete now.
    WAKEUP.intake,
  );
}

/**
 * received -> feeding for the last part, received -> merged for those before it (contract 4.2). `dueAt`: now, or when it was received,
 * where that was before this process began.
 */
export function feedMessage(id: string, partIds: string[], now: number, dueAt: number = now): Statement[] {
  return [
    ...guarded(
      "update inbound_message set status = 'feeding', due_at = ? where id = ? and status = 'received'",
      [dueAt, id],
      WAKEUP.bee,
    ),
    ...partIds.flatMap((partId) =>
      guarded(
        `update inbound_message
        set status = 'merged', merged_into = ?, processed_at = ?
        where id = ? and status = 'received'`,
        [id, now, partId],
      )
    ),
  ];
}

/** feeding stays feeding: counts an attempt before it begins, so that one that crashes the service counts, too. */
export function attemptMessage(id: string, attempt: number): Statement[] {
  return guarded(
    "update inbound_message set attempt = ? where id = ? and status = 'feeding' and attempt = ?",
    [
      attempt,
      id,
      attempt - 1,
    ],
  );
}

/** feeding stays feeding, due now and without the last attempt: an orderly stop, and a look at it, use up none. */
export function releaseMessage(id: string, now: number): Statement[] {
  return guarded(
    "update inbound_message set attempt = attempt - 1, due_at = ? where id = ? and status = 'feeding'",
    [now, id],
  );
}

/** feeding -> bee_processed: it is routed, and the next message of its conversation can be. */
export function finishMessage(id: string, routed: RoutedTo, now: number): Statement[] {
  return guarded(
    `update inbound_message
    set status = 'bee_processed', routed = ?, processed_at = ?, error = ''
    where id = ? and status = 'feeding'`,
    [routed, now, id],
    WAKEUP.bee,
  );
}

/** feeding -> failed: the coordinator gave up. */
export function failMessage(id: string, error: string, now: number): Statement[] {
  return guarded(
    `update inbound_message
    set status = 'failed', routed = 'nobody', processed_at = ?, error = ?
    where id = ? and status = 'feeding'`,
    [now, error, id],
    WAKEUP.bee,
  );
}

/** feeding stays feeding, not to be tried before `dueAt`. */
export function postponeMessage(id: string, error: string, dueAt: number): Statement[] {
  return guarded(
    "update inbound_message set error = ?, due_at = ? where id = ? and status = 'feeding'",
    [error, dueAt, id],
    WAKEUP.bee,
  );
}

/** Messages of a session that are not routed yet -> failed, for a clear or a deletion. */
export function dropUnrouted(sessionKey: string, error: string, now: number): Statement {
  return {
    sql: `update inbound_message
      set status = 'failed', error = ?, processed_at = ?
      where session_key = ? and status ${MESSAGE_IS_UNROUTED}`,
    args: [error, now, sessionKey],
  };
}

/** A received message, as the quiet window sees it. */
export interface WaitingMessage extends Row {
  id: string;
  session_key: string;
  platform: string;
  received_at: number;
  alone: number;
  /** Of its text. */
  bytes: number;
  sender: string;
  is_data: number;
  is_direct: number;
  /** It begins like a command. */
  command: number;
  /** Its file is still on the platform. */
  has_file: number;
}

/** Up to `limit` received messages in order of arrival. */
export function listReceived(db: Database, limit: number): Promise<WaitingMessage[]> {
  return db.read<WaitingMessage>(
    `select id, session_key, platform, received_at, alone, octet_length(content) as bytes, sender, is_data, is_direct,
      ltrim(content, ' ' || char(9, 10, 13)) glob '[/!][a-z]*' as command, attachment <> '' as has_file
    from inbound_message
    where status = 'received'
    order by session_key, id
    limit ?`,
    [limit],
  );
}

/** The inbound message with this id, or with this id on its platform; null when there is none. */
export async function findInbound(
  db: Database,
  id: string,
  boundTo: string | null = null,
): Promise<InboundMessage | null> {
  const row = await db.first<{ json: Json<InboundMessage> }>(
    `select ${INBOUND_JSON} as json
    from inbound_message
    where (id = ? or id = (select id from inbound_message where platform_message_id = ? order by id desc limit 1))
      and (? is null or session_key = ?)
    order by id = ? desc
    limit 1`,
    [id, id, boundTo, boundTo, id],
  );
  return parsed(row?.json);
}

const FILTERS: Filters<InboundFilter> = {
  ref: named("inbound_message"),
  session_key: oneOf("inbound_message.session_key"),
  platform: oneOf("inbound_message.platform"),
  status: oneOf("inbound_message.status"),
  received_from: BY_LIST,
  received_to: BY_LIST,
};

const RECEIVED = { table: "inbound_message", column: "received_at", index: "inbound_received" };

/** Inbound messages newest first. */
export async function listInbound(
  db: Database,
  filter: InboundFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<InboundMessage>> {
  const where = whereOf(filter, FILTERS);
  inConversation(where, "inbound_message.session_key", boundTo);
  const from = await within(db, where, RECEIVED, { from: filter.received_from, to: filter.received_to });
  const counter = { name: "message", key: "inbound" };
  return list(db, {
    table: "inbound_message",
    from,
    json: INBOUND_JSON,
    texts: INBOUND_TEXTS,
    where,
    counter,
  }, page);
}
