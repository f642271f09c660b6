import { type ChatFilter, type ChatSession, chatSessionSchema } from "../../domain/chat/chat.ts";
import type { Media } from "../../domain/chat/message.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { buildSet, type Database, guard, insertGuarded, insertRow, type Statement } from "../db/database.ts";
import { list, parseNullableJson } from "../db/list.ts";
import type { EventKind } from "../../domain/call/vocabulary.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";
import { buildWhere, BY_LIST, type Filters, limitToConversation, matchReference } from "../db/filter.ts";

const SESSION_JSON = buildJsonSql("chat_session", chatSessionSchema);

export function insertChatSession({ id, name, worker_id, created_at, updated_at }: ChatSession): Statement {
  return insertRow("chat_session", { id, name, worker_id, created_at, updated_at });
}

interface ChatChange {
  name: string | undefined;
  /** Id of the default worker, or null without one. */
  worker_id: string | null | undefined;
}

/** Changes the given fields only, so that concurrent updates of different fields both apply. Guarded by the session's existence. */
export function updateChatSession(id: string, { name, worker_id }: ChatChange, now: number): Statement[] {
  const { sql, args } = buildSet({ name, worker_id, updated_at: now });
  return guard(`update chat_session set ${sql} where id = ?`, [...args, id]);
}

/** Sets `updated_at`, guarded by the session's existence: nothing is sent into a deleted session. */
export function touchChatSession(id: string, now: number): Statement[] {
  return guard("update chat_session set updated_at = ? where id = ?", [now, id]);
}

/** Deletes the session with its messages, replies and contexts, guarded by its existence (interface 3). */
export function deleteChatSession(id: string, sessionKey: string): Statement[] {
  return [
    ...guard("delete from chat_session where id = ?", [id]),
    { sql: "delete from inbound_message where session_key = ?", args: [sessionKey] },
    { sql: "delete from outbound_message where session_key = ?", args: [sessionKey] },
    { sql: "delete from session_context where session_key = ?", args: [sessionKey] },
    { sql: "delete from memory where scope = ?", args: [sessionKey] },
    { sql: "delete from question where session_key = ?", args: [sessionKey] },
    { sql: "delete from steer where session_key = ?", args: [sessionKey] },
    { sql: "delete from upload where session_id = ?", args: [id] },
  ];
}

export async function findChatSession(db: Database, id: string): Promise<ChatSession | null> {
  return parseNullableJson(await readJson(db, SESSION_JSON, "from chat_session where id = ?", [id]));
}

const FILTERS: Filters<ChatFilter> = {
  ref: matchReference("chat_session", { column: "name", key: (name) => name }),
  // The list adds this filter because it depends on the caller.
  last: BY_LIST,
};

/** The caller: the sender of messages, and the conversation that it is bound to, if any. */
interface ChatReader {
  sender: string;
  boundTo: string | null;
}

/** Lists sessions, newest first. A bound caller gets only its own. */
export function listChatSessions(
  db: Database,
  { sender, boundTo }: ChatReader,
  filter: ChatFilter,
  page: Page,
): Promise<Listing<ChatSession>> {
  const where = buildWhere(filter, FILTERS);
  if (filter.last) {
    where.conditions.push(`'local:' || chat_session.id = (
      select session_key from inbound_message where sender = ? and platform = 'local' order by id desc limit 1)`);
    where.args.push(sender);
  }
  limitToConversation(where, "'local:' || chat_session.id", boundTo);
  return list(db, { table: "chat_session", json: SESSION_JSON, where }, page);
}

export interface ConversationEvent {
  seq: number;
  kind: EventKind;
  task_id: string;
  worker_name: string;
  /** Of a task.created event: whether the task is queued or waits for its time. */
  status: string | null;
  /** JSON text of the reply of a message.sent event, or null when the reply is deleted. */
  message: string | null;
}

/** Lists events of a conversation after the number `after`, oldest first. */
export function listConversationEvents(
  db: Database,
  sessionKey: string,
  after: number,
  most: { events: number; contentBytes: number },
): Promise<ConversationEvent[]> {
  return db.read<ConversationEvent>(
    `with next as (
      select seq, kind, journal.task_id, journal.worker_id, journal.execution_id,
        journal.data ->> 'status' as status, outbound_message.id as reply_id,
        coalesce(octet_length(outbound_message.content), 0) as bytes
      from journal
      left join outbound_message
        on kind = 'message.sent' and outbound_message.id = journal.data ->> 'outbound_id'
      where journal.session_key = ? and journal.session_key <> '' and seq > ?
      order by seq
      limit ?),
    summed as (select *, sum(bytes) over (order by seq) - bytes as bytes_before from next)
    select seq, kind, summed.task_id, summed.status,
      coalesce(worker.name, execution.worker_name, '') as worker_name,
      case when reply_id is not null then json_object(
        'id', reply_id,
        'role', 'bee',
        'content', outbound_message.content,
        'ts', outbound_message.sent_at,
        'source_type', outbound_message.source_type,
        'source_id', outbound_message.source_id,
        'worker_name', coalesce(worker.name, execution.worker_name, ''),
        'media', json(outbound_message.media),
        'reply_to', outbound_message.message_id,
        'question_id', nullif(outbound_message.question_id, '')) end as message
    from summed
    left join worker on worker.id = summed.worker_id
    left join execution on execution.id = summed.execution_id
    left join outbound_message on outbound_message.id = reply_id
    where bytes_before < ?
    order by seq`,
    [sessionKey, after, most.events, most.contentBytes],
  );
}

/** Returns the event number that precedes the latest `count` events of a conversation. */
export async function findReplayStart(db: Database, sessionKey: string, count: number): Promise<number> {
  return await db.readValue<number>(
    `select seq
    from journal
    where session_key = ? and session_key <> ''
    order by seq desc
    limit 1 offset ?`,
    [sessionKey, count],
  ) ?? 0;
}

export interface Upload extends Media {
  session_id: string;
  created_at: number;
}

export interface UploadQuota {
  files: number;
  bytes: number;
}

/** Stores an uploaded file, guarded by the session's quota. */
export function insertUpload(upload: Upload, most: UploadQuota): Statement[] {
  return insertGuarded("upload", { ...upload }, {
    sql: "(select count(*) < ? and coalesce(sum(size), 0) + ? <= ? from upload where session_id = ?)",
    args: [most.files, upload.size, most.bytes, upload.session_id],
  });
}

export function findUpload(db: Database, path: string): Promise<Media | null> {
  return db.first<Media>("select path, name, original_name, size, mime from upload where path = ?", [path]);
}

/** Returns the number and size of the files in a session. */
export async function measureUploads(db: Database, sessionId: string): Promise<UploadQuota> {
  const row = await db.first<{ files: number; bytes: number }>(
    "select count(*) as files, coalesce(sum(size), 0) as bytes from upload where session_id = ?",
    [sessionId],
  );
  return row ?? { files: 0, bytes: 0 };
}
