import { parseChatSessionId } from "../../domain/chat/chat.ts";
import {
  type buildOutbound,
  type OutboundFilter,
  type OutboundMessage,
  outboundSchema,
} from "../../domain/chat/message.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { type Database, guard, insertRow, type Statement } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import { recordTransition } from "../events/journal.ts";
import { list } from "../db/list.ts";
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

export const OUTBOUND = {
  table: "outbound_message",
  json: buildJsonSql("outbound_message", outboundSchema, { next_attempt_at: "outbound_message.due_at" }),
  texts: ["content", "error"],
};

type NewOutbound = ReturnType<typeof buildOutbound>;

/** Suppresses the last message of a run if the run itself sent the same text, or any message (contract 4.6). */
type Suppression = "always" | "unless-same" | "unless-any";

interface SendOptions {
  unless?: Suppression;
  /** The text that `unless-same` compares. Default: the content. */
  same?: string;
  when?: SqlCondition | undefined;
  data?: Record<string, unknown>;
}

function insertOutbound(message: NewOutbound, { unless = "always", same, when }: SendOptions): Statement {
  const { session_key, execution_id, content, due_at } = message;
  const row = { ...message, media: JSON.stringify(message.media) };
  const sessionId = parseChatSessionId(session_key);
  // A deleted local session gets no message.
  const isWanted = {
    sql: `(? is null or exists (select 1 from chat_session where id = ?))
        and (? = 'always' or not exists (
          select 1
          from outbound_message
          where execution_id = ? and execution_id <> '' and (? = 'unless-any' or trim(content) = trim(?))))
        ${when === undefined ? "" : `and (${when.sql})`}`,
    args: [sessionId, sessionId, unless, execution_id, unless, same ?? content, ...(when?.args ?? [])],
  };
  return insertRow("outbound_message", row, isWanted, due_at === null ? undefined : WAKEUP.outbox);
}

/** Stores an outbound message. A local one counts as sent immediately and gets its event. Others wake the outbox. */
export function sendMessage(message: NewOutbound, options: SendOptions = {}): Statement[] {
  const insert = insertOutbound(message, options);
  if (message.status !== "sent") return [insert];
  return recordTransition(insert, message.created_at, {
    kind: "message.sent",
    session_key: message.session_key,
    message_id: message.message_id,
    execution_id: message.execution_id,
    worker_id: message.source_type === "worker" ? message.source_id : "",
    actor: formatActor(message),
    data: { outbound_id: message.id, ...options.data },
  });
}

function formatActor({ source_type, source_id }: NewOutbound): string {
  if (source_type === "worker") return `worker:${source_id}`;
  // The source of a person's message is the person.
  return /^(user|token):/.test(source_id) ? source_id : source_type;
}

const FILTERS: Filters<OutboundFilter> = {
  ref: matchReference("outbound_message"),
  ...matchColumns("outbound_message", ["session_key", "platform", "status", "source_type", "source_id"]),
  text: matchText(["outbound_message.content", "outbound_message.error"], "outbound_message"),
  sent_from: BY_LIST,
  sent_to: BY_LIST,
};

const SENT = { table: "outbound_message", column: "sent_at", index: "outbound_sent" };

export async function listOutbound(
  db: Database,
  filter: OutboundFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<OutboundMessage>> {
  const where = buildWhere(filter, FILTERS);
  limitToConversation(where, "outbound_message.session_key", boundTo);
  const from = await addTimeRange(db, where, SENT, { from: filter.sent_from, to: filter.sent_to });
  return list(db, { ...OUTBOUND, from, where, counter: { name: "message", key: "outbound" } }, page);
}

/** failed -> sent. */
export function finishOutbound(id: string, now: number): Statement[] {
  return guard(
    `update outbound_message
    set status = 'sent', sent_at = ?, error = '', due_at = null, attempt = attempt + 1
    where id = ? and status = 'failed'`,
    [now, id],
  );
}

/** Schedules the next delivery at `dueAt`, or none for null. */
export function deferOutbound(id: string, error: string, dueAt: number | null): Statement[] {
  return guard(
    `update outbound_message
    set error = ?, due_at = ?, attempt = attempt + 1
    where id = ? and status = 'failed'`,
    [error, dueAt, id],
  );
}
