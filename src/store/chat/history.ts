import type { ChatMessage } from "../../domain/chat/chat.ts";
import { joinJson, type Json } from "../../domain/call/json.ts";
import { COUNT_MAX, type Listing } from "../../domain/call/page.ts";
import { fits, type MeasuredObject, type Objects, readMeasured } from "../db/size_limited_read.ts";
import type { Database } from "../db/database.ts";

/** A part of a history: the latest `limit` messages, or those before a message. `maxBytes` may shorten it. */
export interface HistoryPart {
  before?: string | undefined;
  limit: number;
  maxBytes?: number;
}

// Each half of the union has the condition. Outside of the union, SQLite would first read the messages of all conversations.
function buildMessagesSql(condition: string): string {
  return `(
    select id, 'user' as role, content, received_at as ts, media, null as reply_to, '' as question_id
    from inbound_message
    where ${condition}
    union all
    select id, 'bee', content, sent_at, media, message_id, question_id
    from outbound_message
    where ${condition}) as message`;
}

const LISTED = buildMessagesSql("id in (select value from json_each(?))");

const MESSAGE_JSON =
  `json_object('id', message.id, 'role', message.role, 'content', message.content, 'ts', message.ts,
  'media', json(message.media), 'reply_to', message.reply_to, 'question_id', nullif(message.question_id, ''))`;

const HISTORY: Objects<ChatMessage> = {
  table: "message",
  json: MESSAGE_JSON,
  texts: ["content"],
  find: (id) => ({ sql: `from ${buildMessagesSql("id = ?")}`, args: [id, id] }),
};

/**
 * Lists the messages of a conversation, received and sent, by ascending time (contract 3, Local chat). The part ends with the newest
 * message, and starts later if its text exceeds the limit of a read (contract 8.18).
 */
export async function listHistory(
  db: Database,
  sessionKey: string,
  part: HistoryPart,
): Promise<Json<ChatMessage>[]> {
  return (await readHistory(db, sessionKey, part)).rows.map((row) => row.json);
}

/** Returns a part of a conversation like listHistory(), the total count, and the cursor for older messages (contract 8.2). */
export async function readHistoryPage(
  db: Database,
  sessionKey: string,
  part: HistoryPart,
): Promise<Listing<ChatMessage>> {
  const [{ rows, ended }, total] = await Promise.all([
    readHistory(db, sessionKey, part),
    countHistory(db, sessionKey),
  ]);
  const oldest = rows.reduce<string | null>(
    (least, { id }) => least === null || id < least ? id : least,
    null,
  );
  return { json: joinJson(rows.map((row) => row.json)), total, next: ended ? oldest : null };
}

async function countHistory(db: Database, sessionKey: string): Promise<number> {
  return await db.readValue<number>(
    `select count(*) as total
    from (
      select 1 from inbound_message where session_key = ?
      union all
      select 1 from outbound_message indexed by outbound_history where session_key = ? and status = 'sent'
      limit ?)`,
    [sessionKey, sessionKey, COUNT_MAX + 1],
  ) ?? 0;
}

interface HistoryRow {
  id: string;
  json: Json<ChatMessage>;
}

async function readHistory(
  db: Database,
  sessionKey: string,
  part: HistoryPart,
): Promise<{ rows: HistoryRow[]; ended: boolean }> {
  const { before = null, limit, maxBytes } = part;
  // Reads one more row than the page, to see whether older rows exist.
  const most = limit + 1;
  // Ids are UUIDv7, so both tables merge by id. The query names its index: the index by status covers all conversations, and
  // the index by conversation has unsent messages. It reads no column after the text, which SQLite would read page by page.
  const measured = await db.read<MeasuredObject>(
    `select id, bytes
    from (
      select *
      from (
        select id, octet_length(content) as bytes
        from inbound_message
        where session_key = ? and (? is null or id < ?)
        order by id desc
        limit ?)
      union all
      select *
      from (
        select id, octet_length(content) as bytes
        from outbound_message indexed by outbound_history
        where session_key = ? and status = 'sent' and (? is null or id < ?)
        order by id desc
        limit ?))
    order by id desc
    limit ?`,
    [sessionKey, before, before, most, sessionKey, before, before, most, most],
  );
  const wanted = measured.slice(0, limit);
  const hasOlder = measured.length > limit;
  if (fits(wanted, maxBytes)) return { rows: await readAll(db, wanted), ended: hasOlder };
  const bound = { over: "end" as const, ...(maxBytes === undefined ? {} : { maxBytes }) };
  const { rows, ended } = await readMeasured(db, HISTORY, wanted, bound);
  return { rows: await sortByTime(db, rows), ended: ended || hasOlder };
}

// The measured rows have no times.
async function sortByTime(db: Database, rows: readonly HistoryRow[]): Promise<HistoryRow[]> {
  const ids = JSON.stringify(rows.map(({ id }) => id));
  const ordered = await db.read<{ id: string }>(
    `select message.id as id from ${LISTED} order by message.ts, message.id`,
    [ids, ids],
  );
  const places = new Map(ordered.map(({ id }, at) => [id, at]));
  return rows.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
}

function readAll(db: Database, measured: readonly MeasuredObject[]): Promise<HistoryRow[]> {
  const ids = JSON.stringify(measured.map(({ id }) => id));
  return db.read<HistoryRow>(
    `select message.id as id, ${MESSAGE_JSON} as json from ${LISTED} order by message.ts, message.id`,
    [ids, ids],
  );
}
