import { WAKEUP } from "../../base/wakeups.ts";
import type { OutboundMessage } from "../../domain/chat/message.ts";
import { type Database, guard, type Statement } from "../db/database.ts";
import { CHAT_OPTIONS } from "../work/question.ts";

/** The oldest waiting reply of its conversation. */
export interface WaitingOutbound
  extends
    Pick<OutboundMessage, "id" | "session_key" | "message_id" | "content" | "attempt" | "error">,
    Pick<OutboundMessage, "question_id"> {
  /** JSON text. */
  media: string;
  /** 1 when its parts are stored. */
  is_cut: number;
  created_at: number;
  /** 1 after a request to send it again. */
  is_resent: number;
  /** Start of the wait: its creation, or the last request to send it again. */
  since: number;
  /** The platform's id of the message that it answers, null for none. */
  answers: string | null;
  /** Options of its question as JSON, while the question is open. */
  options: string;
}

// The next round reads more.
const WAITING_MAX_BYTES = 1024 * 1024;

/**
 * Lists the oldest reply of each conversation of a platform, if that reply is due. Omits `busy` conversations. Later replies wait for the
 * oldest one (contract 10).
 */
export function listDueReplies(
  db: Database,
  platform: string,
  { now, busy, limit }: { now: number; busy: readonly string[]; limit: number },
): Promise<WaitingOutbound[]> {
  return db.read<WaitingOutbound>(
    `select id, session_key, message_id, content, media, attempt, error,
      created_at, resent_at is not null as is_resent, coalesce(resent_at, created_at) as since, question_id,
      exists (select 1 from outbound_part where outbound_id = outbound_message.id) as is_cut,
      coalesce((select ${CHAT_OPTIONS} from question where question.id = question_id and status = 'open'), '[]') as options,
      (select platform_message_id from inbound_message where id = message_id) as answers
    from outbound_message
    where id in (
      select id
      from (
        select id, sum(octet_length(content)) over (order by due_at, id) - octet_length(content) as bytes_before
        from (
          select id, due_at, content
          from outbound_message as one
          where platform = ? and status = 'failed' and due_at is not null and due_at <= ?
            and session_key not in (select value from json_each(?))
            and not exists (
              select 1
              from outbound_message as earlier
              where earlier.platform = one.platform and earlier.session_key = one.session_key and earlier.id < one.id
                and earlier.status = 'failed' and earlier.due_at is not null)
          order by due_at, id
          limit ?))
      where bytes_before < ?)
    order by due_at, id`,
    [platform, now, JSON.stringify(busy), limit, WAITING_MAX_BYTES],
  );
}

/** Lists due replies of platforms that are not configured. */
export function listUnknownPlatformReplies(
  db: Database,
  platforms: readonly string[],
  now: number,
  limit: number,
): Promise<{ id: string; session_key: string; message_id: string; platform: string; attempt: number }[]> {
  return db.read(
    `select id, session_key, message_id, platform, attempt
    from outbound_message
    where status = 'failed' and due_at is not null and due_at <= ?
      and platform not in (select value from json_each(?))
    order by due_at
    limit ?`,
    [now, JSON.stringify(platforms), limit],
  );
}

/** Counts the waiting replies of each platform, with the creation of the oldest. */
export function countWaitingReplies(
  db: Database,
): Promise<{ platform: string; waiting: number; since: number }[]> {
  return db.read(
    `select platform, count(*) as waiting, min(created_at) as since
    from outbound_message
    where status = 'failed' and due_at is not null
    group by platform`,
  );
}

export interface OutboundPart {
  number: number;
  /** JSON. */
  body: string;
  unanswered: number;
  sending_at: number | null;
  sent_at: number | null;
}

/** Lists the parts of a reply in order, none before it was cut. */
export function listParts(db: Database, outboundId: string): Promise<OutboundPart[]> {
  return db.read<OutboundPart>(
    `select number, body, unanswered, sending_at, sent_at
    from outbound_part
    where outbound_id = ?
    order by number`,
    [outboundId],
  );
}

export function insertParts(outboundId: string, bodies: readonly string[]): Statement[] {
  return bodies.map((body, number) => ({
    sql: `insert into outbound_part (outbound_id, number, body)
      select ?, ?, ?
      where exists (select 1 from outbound_message where id = ? and status = 'failed')`,
    args: [outboundId, number, body, outboundId],
  }));
}

/** Marks a part as being sent: it may arrive from now on. Guarded by its message still waiting. */
export function sendPart(outboundId: string, number: number, now: number): Statement[] {
  return guard(
    `update outbound_part
    set sending_at = ?
    where outbound_id = ? and number = ? and sending_at is null and sent_at is null
      and exists (select 1 from outbound_message where id = ? and status = 'failed' and due_at is not null)`,
    [now, outboundId, number, outboundId],
  );
}

export function finishPart(outboundId: string, number: number, sentAs: string, now: number): Statement[] {
  return guard(
    `update outbound_part
    set sending_at = null, sent_at = ?, sent_as = ?
    where outbound_id = ? and number = ? and sending_at is not null`,
    [now, sentAs, outboundId, number],
  );
}

/** Marks a part as not sent. With `unanswered`, the part may have arrived. */
export function releasePart(outboundId: string, number: number, unanswered: boolean): Statement[] {
  return guard(
    `update outbound_part
    set sending_at = null, unanswered = unanswered + ?
    where outbound_id = ? and number = ? and sending_at is not null`,
    [unanswered ? 1 : 0, outboundId, number],
  );
}

/** Called at a start: marks parts that were being sent as unanswered. */
export function releaseParts(): Statement {
  return {
    sql: `update outbound_part
      set sending_at = null, unanswered = unanswered + 1
      where sending_at is not null`,
    args: [],
    wakeup: WAKEUP.outbox,
  };
}

/** Delays a reply until `dueAt` without counting an attempt, for a cooldown of its platform. */
export function delayOutbound(id: string, error: string, dueAt: number): Statement[] {
  return guard(
    `update outbound_message
    set error = ?, due_at = ?
    where id = ? and status = 'failed' and due_at is not null`,
    [error, dueAt, id],
  );
}
