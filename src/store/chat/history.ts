import type { ChatMessage } from "../../domain/chat/chat.ts";
import { type Json, jsonList } from "../../domain/call/json.ts";
import { COUNT_MAX, type Listing } from "../../domain/call/page.ts";
import { fits, type Measured, type Objects, readMeasured } from "../db/size_limited_read.ts";
import type { Database, Row } from "../db/database.ts";

/** Which part of a history: the latest `limit`, or those before a message; fewer where they have more text than `maxBytes`. */
export interface HistoryPart {
  before?: string | undefined;
  limit: number;
  maxBytes?: number;
}

// The condition stands in both halves: around them it would be looked at only when all messages of everybody have been read.
function said(condition: string): string {
  return `(
    select id, 'user' as role, content, received_at as ts, media, null as reply_to, '' as question_id
    from inbound_message
    where ${condition}
    union all
    select id, 'bee', content, sent_at, media, message_id, question_id
    from outbound_message
    where ${condition}) as said`;
}

const SAID_JSON = `json_object('id', said.id, 'role', said.role, 'content', said.content, 'ts', said.ts,
  'media', json(said.media), 'reply_to', said.reply_to, 'question_id', nullif(said.question_id, ''))`;

const HISTORY: Objects<ChatMessage> = {
  table: "said",
  json: SAID_JSON,
  texts: ["content"],
  find: (id) => ({ sql: `from ${said("id = ?")}`, args: [id, id] }),
};

/**
 * A conversation: what the user said and what was sent back, as JSON texts by time ascending (contract 3, Local chat). It ends
 * with the newest, and begins where it would be more text than a read may make (contract 8.18).
 */
export async function listHistory(
  db: Database,
  sessionKey: string,
  part: HistoryPart,
): Promise<Json<ChatMessage>[]> {
  return (await readHistory(db, sessionKey, part)).rows.map((row) => row.json);
}

/** A part of a conversation as listHistory() has it, how much there is in all, and before which message it goes on (contract 8.2). */
export async function pageHistory(
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
  return { json: jsonList(rows.map((row) => row.json)), total, next: ended ? oldest : null };
}

async function countHistory(db: Database, sessionKey: string): Promise<number> {
  const row = await db.first<{ total: number }>(
    `select count(*) as total
    from (
      select 1 from inbound_message where session_key = ?
      union all
      select 1 from outbound_message indexed by outbound_history where session_key = ? and status = 'sent'
      limit ?)`,
    [sessionKey, sessionKey, COUNT_MAX + 1],
  );
  return row?.total ?? 0;
}

interface Shown {
  id: string;
  json: Json<ChatMessage>;
}

async function readHistory(
  db: Database,
  sessionKey: string,
  part: HistoryPart,
): Promise<{ rows: Shown[]; ended: boolean }> {
  const { before = null, limit, maxBytes } = part;
  // One more than is shown says whether there are older ones.
  const most = limit + 1;
  // Ids are UUIDv7, so the newest of both tables merge by id; each side gives at most what can be shown. The index
  // is named: that of the status has the messages of all, and that of the conversation does not know which were sent.
  // Nothing is asked of a row that stands behind its text, which would be read page by page.
  const measured = await db.read<Measured & Row>(
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
  const isMore = measured.length > limit;
  if (fits(wanted, maxBytes)) return { rows: await readAll(db, wanted), ended: isMore };
  const bound = { over: "end" as const, ...(maxBytes === undefined ? {} : { maxBytes }) };
  const { rows, ended } = await readMeasured(db, HISTORY, wanted, bound);
  return { rows: await byTime(db, rows), ended: ended || isMore };
}

// When they were received or sent is not in what was measured.
async function byTime(db: Database, rows: readonly Shown[]): Promise<Shown[]> {
  const ids = JSON.stringify(rows.map(({ id }) => id));
  const ordered = await db.read<{ id: string }>(
    `select said.id as id from ${said("id in (select value from json_each(?))")} order by said.ts, said.id`,
    [ids, ids],
  );
  const places = new Map(ordered.map(({ id }, at) => [id, at]));
  return rows.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
}

function readAll(
  db: Database,
  measured: readonly Measured[],
): Promise<{ id: string; json: Json<ChatMessage> }[]> {
  const ids = JSON.stringify(measured.map(({ id }) => id));
  const listed = said("id in (select value from json_each(?))");
  return db.read(
    `select said.id as id, ${SAID_JSON} as json from ${listed} order by said.ts, said.id`,
    [ids, ids],
  );
}
