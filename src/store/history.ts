import type { ChatMessage } from "../domain/chat.ts";
import { type Json, jsonList } from "../domain/json.ts";
import { COUNT_MAX, type Listing } from "../domain/page.ts";
import { fits, type Measured, type Objects, readMeasured } from "./bounded.ts";
import type { Database, Row } from "./database.ts";

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
  const { rows, ended } = fits(wanted, maxBytes)
    ? { rows: await readAll(db, wanted), ended: false }
    : await readMeasured(db, HISTORY, wanted, {
      over: "end",
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
  const times = await timesOf(db, rows);
  const timeOf = (id: string) => times.get(id) ?? 0;
  rows.sort((a, b) => timeOf(a.id) - timeOf(b.id) || (a.id < b.id ? -1 : 1));
  return { rows, ended: ended || measured.length > limit };
}

/** When these were received, or sent. */
async function timesOf(db: Database, rows: readonly Shown[]): Promise<Map<string, number>> {
  const ids = JSON.stringify(rows.map(({ id }) => id));
  const found = await db.read<{ id: string; ts: number }>(
    `select said.id as id, said.ts as ts from ${said("id in (select value from json_each(?))")}`,
    [ids, ids],
  );
  return new Map(found.map(({ id, ts }) => [id, ts]));
}

function readAll(
  db: Database,
  measured: readonly Measured[],
): Promise<{ id: string; json: Json<ChatMessage> }[]> {
  const ids = JSON.stringify(measured.map(({ id }) => id));
  const listed = said("id in (select value from json_each(?))");
  return db.read(`select said.id as id, ${SAID_JSON} as json from ${listed}`, [ids, ids]);
}
