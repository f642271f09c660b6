import { chatSessionId } from "../../domain/chat/chat.ts";
import { type OutboundFilter, type OutboundMessage, outboundSchema } from "../../domain/chat/message.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { type Database, guarded, type Statement, type Value } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import { moved } from "../events/journal.ts";
import { list } from "../db/list.ts";
import { shown } from "../db/json_projection.ts";
import { BY_LIST, type Filters, inConversation, named, oneOf, whereOf, within } from "../db/filter.ts";

/** The JSON of an outbound message. */
export const OUTBOUND_JSON = shown("outbound_message", outboundSchema, {
  next_attempt_at: "outbound_message.due_at",
});

/** Which texts of an outbound message may be large. */
export const OUTBOUND_TEXTS = ["content", "error"];

/** An outbound message before it is stored. */
type NewOutbound =
  & Pick<
    OutboundMessage,
    | "id"
    | "session_key"
    | "platform"
    | "message_id"
    | "content"
    | "media"
    | "status"
    | "source_type"
    | "source_id"
    | "question_id"
    | "created_at"
    | "sent_at"
  >
  & { execution_id: string; due_at: number | null };

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

/** When the last message of a run is left out: if it sent the same text itself, or if it sent anything at all (contract 4.6). */
type Unless = "always" | "unless-same" | "unless-any";

/** What decides whether a message is stored, and what its event says beside its id. */
interface Sending {
  unless?: Unless;
  when?: SqlCondition | undefined;
  data?: Record<string, unknown>;
}

// Nothing is sent into a local session that was deleted meanwhile.
function insertOutbound(message: NewOutbound, { unless = "always", when }: Sending): Statement {
  const values: Value[] = OUTBOUND_COLUMNS.map((name) =>
    name === "media" ? JSON.stringify(message.media) : message[name]
  );
  const sessionId = chatSessionId(message.session_key);
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

/** Stores an outbound message. On the local platform it is sent with that, and the event says so; others wake the outbox. */
export function sendMessage(message: NewOutbound, sending: Sending = {}): Statement[] {
  const insert = insertOutbound(message, sending);
  if (message.status !== "sent") return [insert];
  return moved(insert, message.created_at, {
    kind: "message.sent",
    session_key: message.session_key,
    message_id: message.message_id,
    execution_id: message.execution_id,
    worker_id: message.source_type === "worker" ? message.source_id : "",
    actor: actorOf(message),
    data: { outbound_id: message.id, ...sending.data },
  });
}

function actorOf({ source_type, source_id }: NewOutbound): string {
  if (source_type === "worker") return `worker:${source_id}`;
  // What a person says has the person as its source.
  return /^(user|token):/.test(source_id) ? source_id : source_type;
}

const FILTERS: Filters<OutboundFilter> = {
  ref: named("outbound_message"),
  session_key: oneOf("outbound_message.session_key"),
  platform: oneOf("outbound_message.platform"),
  status: oneOf("outbound_message.status"),
  source_type: oneOf("outbound_message.source_type"),
  source_id: oneOf("outbound_message.source_id"),
  sent_from: BY_LIST,
  sent_to: BY_LIST,
};

const SENT = { table: "outbound_message", column: "sent_at", index: "outbound_sent" };

/** Outbound messages newest first. */
export async function listOutbound(
  db: Database,
  filter: OutboundFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<OutboundMessage>> {
  const where = whereOf(filter, FILTERS);
  inConversation(where, "outbound_message.session_key", boundTo);
  const from = await within(db, where, SENT, { from: filter.sent_from, to: filter.sent_to });
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

/** failed -> sent: the platform took it. */
export function deliveredOutbound(id: string, now: number): Statement[] {
  return guarded(
    `update outbound_message
    set status = 'sent', sent_at = ?, error = '', due_at = null, attempt = attempt + 1
    where id = ? and status = 'failed'`,
    [now, id],
  );
}

/** failed stays failed: tried again at `dueAt`, or never when it is null. */
export function deferOutbound(id: string, error: string, dueAt: number | null): Statement[] {
  return guarded(
    `update outbound_message
    set error = ?, due_at = ?, attempt = attempt + 1
    where id = ? and status = 'failed'`,
    [error, dueAt, id],
  );
}
