import { parseChatSessionId } from "../../domain/chat/chat.ts";
import { type OutboundFilter, type OutboundMessage, outboundSchema } from "../../domain/chat/message.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { type Database, guard, type Statement, type Value } from "../db/database.ts";
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
  matchAny,
  matchReference,
} from "../db/filter.ts";

export const OUTBOUND_JSON = buildJsonSql("outbound_message", outboundSchema, {
  next_attempt_at: "outbound_message.due_at",
});

export const OUTBOUND_TEXTS = ["content", "error"];

const OUTBOUND_COLUMNS = [
  "id",
  "session_key",
  "platform",
  "message_id",
  "content",
  "media",
  "status",
  "source_type",
  "source_id",
  "question_id",
  "execution_id",
  "created_at",
  "sent_at",
  "due_at",
] as const;

type NewOutbound =
  & Pick<OutboundMessage, Exclude<(typeof OUTBOUND_COLUMNS)[number], "execution_id" | "due_at">>
  & { execution_id: string; due_at: number | null };

/** Suppresses the last message of a run if the run itself sent the same text, or any message (contract 4.6). */
type Suppression = "always" | "unless-same" | "unless-any";

interface SendOptions {
  unless?: Suppression;
  when?: SqlCondition | undefined;
  data?: Record<string, unknown>;
}

// A deleted local session gets no message.
function insertOutbound(message: NewOutbound, { unless = "always", when }: SendOptions): Statement {
  const values: Value[] = OUTBOUND_COLUMNS.map((name) =>
    name === "media" ? JSON.stringify(message.media) : message[name]
  );
  const sessionId = parseChatSessionId(message.session_key);
  return {
    sql: `insert into outbound_message (${OUTBOUND_COLUMNS.join(", ")})
      select ${OUTBOUND_COLUMNS.map(() => "?").join(", ")}
      where (? is null or exists (select 1 from chat_session where id = ?))
        and (? = 'always' or not exists (
          select 1
          from outbound_message
          where execution_id = ? and execution_id <> '' and (? = 'unless-any' or trim(content) = trim(?))))
        ${when === undefined ? "" : `and (${when.sql})`}`,
    args: [
      ...[...values, sessionId, sessionId, unless, message.execution_id, unless, message.content],
      ...(when?.args ?? []),
    ],
    wakeup: message.due_at === null ? undefined : WAKEUP.outbox,
  };
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
  session_key: matchAny("outbound_message.session_key"),
  platform: matchAny("outbound_message.platform"),
  status: matchAny("outbound_message.status"),
  source_type: matchAny("outbound_message.source_type"),
  source_id: matchAny("outbound_message.source_id"),
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
  const counter = { name: "message", key: "outbound" };
  return list(db, {
    table: "outbound_message",
    from,
    json: OUTBOUND_JSON,
    texts: OUTBOUND_TEXTS,
    where,
    counter,
  }, page);
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
