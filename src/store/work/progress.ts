import { type Database, type Statement } from "../db/database.ts";
import { EXECUTION_IS_OPEN, MESSAGE_IS_UNROUTED } from "../db/status_sql.ts";

/** A message or run of a conversation that a person waits for. */
export interface AwaitedWork {
  session_key: string;
  platform: string;
  /** "" while the message is not routed. */
  execution_id: string;
  worker: string;
  since: number;
  is_direct: number;
  /** The platform's id of the message. */
  answers: string;
  /** 1 when a reply of this conversation waits for delivery and has to be sent first. */
  replying: number;
}

/** Lists the messages and runs that people of these platforms wait for, without schedules and runs that wait for a person. */
export function listAwaitedWork(
  db: Database,
  platforms: readonly string[],
  now: number,
  limit: number,
): Promise<AwaitedWork[]> {
  const replying = `exists (
    select 1
    from outbound_message as reply
    where reply.platform = message.platform and reply.session_key = message.session_key
      and reply.status = 'failed' and reply.due_at is not null)`;
  return db.read<AwaitedWork>(
    `select message.session_key, message.platform, '' as execution_id, '' as worker, received_at as since, is_direct,
      platform_message_id as answers, ${replying} as replying
    from inbound_message as message
    where message.status ${MESSAGE_IS_UNROUTED} and message.is_data = 0 and message.due_at <= ?
      and message.platform in (select value from json_each(?))
    union all
    select message.session_key, message.platform, execution.id, execution.worker_name, execution.created_at, is_direct,
      platform_message_id, ${replying}
    from execution
    join task on task.id = execution.task_id and task.type = 'immediate'
    join inbound_message as message on message.id = execution.message_id
      and message.session_key = execution.session_key
    where execution.status ${EXECUTION_IS_OPEN} and message.is_data = 0
      and message.platform in (select value from json_each(?))
      and not exists (select 1 from question where question.execution_id = execution.id and question.waiting = 1)
    order by since
    limit ?`,
    [now, JSON.stringify(platforms), JSON.stringify(platforms), limit],
  );
}

export interface ProgressMessage {
  session_key: string;
  platform: string;
  /** The platform's id of the message, "" when unknown. */
  sent_as: string;
  text: string;
  edits: number;
  edited_at: number;
}

export function listProgress(
  db: Database,
  platforms: readonly string[],
  limit: number,
): Promise<ProgressMessage[]> {
  return db.read<ProgressMessage>(
    `select session_key, platform, sent_as, text, edits, edited_at
    from platform_progress
    where platform in (select value from json_each(?))
    limit ?`,
    [JSON.stringify(platforms), limit],
  );
}

export function storeProgress(progress: ProgressMessage): Statement {
  const { session_key, platform, sent_as, text, edits, edited_at } = progress;
  return {
    sql: `insert into platform_progress (session_key, platform, sent_as, text, edits, edited_at)
      values (?, ?, ?, ?, ?, ?)
      on conflict (session_key) do update set
        sent_as = excluded.sent_as, text = excluded.text, edits = excluded.edits, edited_at = excluded.edited_at`,
    args: [session_key, platform, sent_as, text, edits, edited_at],
  };
}

export function deleteProgress(sessionKey: string): Statement {
  return { sql: "delete from platform_progress where session_key = ?", args: [sessionKey] };
}
