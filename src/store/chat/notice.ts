import { newId } from "../../base/id.ts";
import { hasConversation, outboundOf, platformOf } from "../../domain/chat/message.ts";
import type { Notice } from "../../domain/system/notice.ts";
import type { Database, Row, Statement } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import { BATCH_ROWS, type Prune } from "../db/retention.ts";
import { sendMessage } from "./outbound.ts";

/**
 * Puts a notice into the conversation that the thing belongs to, as a message of the system; without a conversation there
 * is none, and the inbox shows the thing (contract 11). Put it into the batch of the move that it tells of. `when` is for
 * a move that decides in SQL whether there is anything to tell.
 */
export function insertNotice(notice: Notice, now: number, when?: SqlCondition): Statement[] {
  const { session_key, message_id, about, content, execution_id = "" } = notice;
  if (session_key === "" || !hasConversation(session_key)) return [];
  const said = {
    id: newId(),
    session_key,
    platform: platformOf(session_key),
    message_id,
    execution_id,
    content,
    source_type: "system" as const,
    source_id: about,
  };
  return sendMessage(outboundOf(said, now), { when, data: { notice: notice.kind } });
}

/** When a notice was told at a place last, and how many equal ones were left out since. */
interface Told extends Row {
  at: number;
  suppressed_count: number;
}

/** When an equal notice was told at this place, or null. */
export function findTold(
  db: Database,
  place: string,
  { kind, about }: Pick<Notice, "kind" | "about">,
): Promise<Told | null> {
  return db.first<Told>(
    "select at, suppressed_count from notice where place = ? and kind = ? and about = ?",
    [
      place,
      kind,
      about,
    ],
  );
}

/** The notice is told at this place now. */
export function noteTold(place: string, { kind, about }: Notice, now: number): Statement {
  return {
    sql: `insert into notice (place, kind, about, at) values (?, ?, ?, ?)
      on conflict (place, kind, about) do update set at = excluded.at, suppressed_count = 0`,
    args: [place, kind, about, now],
  };
}

/** One more that is equal: it is only counted. */
export function countLeftOut(place: string, { kind, about }: Notice): Statement {
  return {
    sql:
      "update notice set suppressed_count = suppressed_count + 1 where place = ? and kind = ? and about = ?",
    args: [place, kind, about],
  };
}

/** What was told so long ago that no rule asks for it. */
export const pruneTold: Prune = (before) => ({
  sql: `delete from notice
    where (place, kind, about) in (select place, kind, about from notice where at < ? limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Who says a message of ours, or null when it is gone. */
export async function findSpeaker(db: Database, outboundId: string): Promise<string | null> {
  const row = await db.first<{ source_type: string }>(
    "select source_type from outbound_message where id = ?",
    [outboundId],
  );
  return row?.source_type ?? null;
}

/** What has to be known of a run that failed: whether its task is tried again, and what kind of task it is. */
interface FailedRun extends Row {
  task_type: string;
  worker_id: string;
  worker_name: string;
  failure: string;
  error: string;
  tried_again: number;
}

/** A failed run, or null when it is gone. */
export function findFailedRun(db: Database, executionId: string): Promise<FailedRun | null> {
  return db.first<FailedRun>(
    `select coalesce(task.type, 'immediate') as task_type, execution.worker_id, execution.worker_name,
      execution.failure, execution.error,
      exists (
        select 1
        from journal
        where task_id = execution.task_id and task_id <> '' and kind = 'task.requeued' and execution_id = execution.id
      ) as tried_again
    from execution
    left join task on task.id = execution.task_id
    where execution.id = ? and execution.status = 'failed'`,
    [executionId],
  );
}
