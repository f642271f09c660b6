import { createId } from "../../base/id.ts";
import { buildOutbound, hasConversation, parsePlatformName } from "../../domain/chat/message.ts";
import type { Notice } from "../../domain/system/notice.ts";
import type { Database, Statement } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import { buildPrune } from "../db/retention.ts";
import { sendMessage } from "./outbound.ts";

/** Builds a notice in the conversation of its subject, or nothing without one (contract 11). Belongs into the batch of the transition. */
export function insertNotice(notice: Notice, now: number, when?: SqlCondition): Statement[] {
  const { session_key, message_id, about, content, execution_id = "" } = notice;
  if (session_key === "" || !hasConversation(session_key)) return [];
  const message = {
    id: createId(),
    session_key,
    platform: parsePlatformName(session_key),
    message_id,
    execution_id,
    content,
    source_type: "system" as const,
    source_id: about,
  };
  return sendMessage(buildOutbound(message, now), { when, data: { notice: notice.kind } });
}

/** When a notice was last sent to a destination, and how many notices were suppressed since. */
interface NoticeState {
  at: number;
  suppressed_count: number;
}

/** Finds the last equal notice at this destination, or null. */
export function findLastNotice(
  db: Database,
  place: string,
  { kind, about }: Pick<Notice, "kind" | "about">,
): Promise<NoticeState | null> {
  const sql = "select at, suppressed_count from notice where place = ? and kind = ? and about = ?";
  return db.first<NoticeState>(sql, [place, kind, about]);
}

export function storeNotice(place: string, { kind, about }: Notice, now: number): Statement {
  return {
    sql: `insert into notice (place, kind, about, at) values (?, ?, ?, ?)
      on conflict (place, kind, about) do update set at = excluded.at, suppressed_count = 0`,
    args: [place, kind, about, now],
  };
}

/** Counts an equal notice that is not sent. */
export function countSuppressedNotice(place: string, { kind, about }: Notice): Statement {
  return {
    sql:
      "update notice set suppressed_count = suppressed_count + 1 where place = ? and kind = ? and about = ?",
    args: [place, kind, about],
  };
}

/** Deletes notices that are too old to suppress others. */
export const pruneNotices = buildPrune("notice", "at < ?", "place, kind, about");

export function findSourceType(db: Database, outboundId: string): Promise<string | null> {
  return db.readValue<string>("select source_type from outbound_message where id = ?", [outboundId]);
}

/** A failed run, with the type of its task and whether the task is retried. */
interface FailedRun {
  task_type: string;
  worker_id: string;
  worker_name: string;
  failure: string;
  error: string;
  tried_again: number;
}

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
